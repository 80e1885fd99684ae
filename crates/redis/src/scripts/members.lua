-- Adds or renews an instance, if one is named, and lists those that are not overdue.
-- KEYS  instances     ARGV  now or "", then perhaps instance, about, ttl in ms
-- Returns {instance, about, ms left, …}
local now = tonumber(ARGV[1])
if not now then
  local time = redis.call('TIME')
  now = time[1] * 1000 + math.floor(time[2] / 1000)
end
if ARGV[2] then
  local ends = string.format('%020.0f', now + tonumber(ARGV[4]))
  redis.call('HSET', KEYS[1], ARGV[2], ends .. ARGV[3])
end
local found, all = {}, redis.call('HGETALL', KEYS[1])
for at = 1, #all, 2 do
  local left = tonumber(string.sub(all[at + 1], 1, 20)) - now
  if left > 0 then
    found[#found + 1] = all[at]
    found[#found + 1] = string.sub(all[at + 1], 21)
    found[#found + 1] = string.format('%.0f', left)
  else
    redis.call('HDEL', KEYS[1], all[at])
  end
end
return found
