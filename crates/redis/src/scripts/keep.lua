-- Changes what is kept of a room, if nobody else did since it was looked at. What may be trimmed
-- or given up was decided by the caller, who looked.
-- KEYS  keep, tip, log, then a snapshot that stays from now on, if any, then what is let go
-- ARGV  mark that was seen, new mark, first head to keep or "", "1" if a snapshot stays,
--       then fields with values ("" takes a field away)
-- Returns {"ok"}, {"changed"} or {"gone"}
if redis.call('EXISTS', KEYS[2]) == 0 then return {'gone'} end
if (redis.call('HGET', KEYS[1], 'mark') or '') ~= ARGV[1] then return {'changed'} end
redis.call('HSET', KEYS[1], 'mark', ARGV[2])
for at = 5, #ARGV, 2 do
  if ARGV[at + 1] == '' then
    redis.call('HDEL', KEYS[1], ARGV[at])
  else
    redis.call('HSET', KEYS[1], ARGV[at], ARGV[at + 1])
  end
end
if ARGV[3] ~= '' then redis.call('XTRIM', KEYS[3], 'MINID', ARGV[3]) end
local first = 4
if ARGV[4] == '1' then
  redis.call('PERSIST', KEYS[4])
  first = 5
end
for at = first, #KEYS do redis.call('UNLINK', KEYS[at]) end
return {'ok'}
