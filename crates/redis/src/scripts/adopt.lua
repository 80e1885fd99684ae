-- Takes batches of a copy in as they were written, if nobody wrote here meanwhile. Whoever calls has
-- checked the copy.
-- KEYS  lease, tip, log
-- ARGV  head and chain before them, epoch that counts as used, bytes of a header, sum of payload
--       bytes before them, then for each batch head, record, time and sum of payload bytes with it
-- Returns {"ok"} or {"taken", head}
-- Keeps epochs_never_go_down, append_refuses_a_stale_head
local tip = redis.call('HMGET', KEYS[2], 'head', 'chain')
if tip[1] and (tip[1] ~= ARGV[1] or tip[2] ~= ARGV[2]) then return {'taken', tip[1]} end
local epoch = tonumber(ARGV[3])
local held = tonumber(redis.call('HGET', KEYS[1], 'epoch') or '0')
if held > epoch then epoch = held end
redis.call('HSET', KEYS[1], 'epoch', string.format('%.0f', epoch), 'nonce', string.rep('0', 32),
  'who', 'a copy', 'until', '0', 'ttl', '1', 'released', '1')
local head, chain, name, bytes = ARGV[1], ARGV[2], string.rep('0', 28), ARGV[5]
for at = 6, #ARGV, 4 do
  local record = ARGV[at + 1]
  redis.call('XADD', KEYS[3], ARGV[at] .. '-0', 'b', record, 't', ARGV[at + 2], 'y', ARGV[at + 3])
  head, chain, name, bytes = ARGV[at], string.sub(record, 57, 88), string.sub(record, 1, 28), ARGV[at + 3]
end
redis.call('HSET', KEYS[2], 'head', head, 'chain', chain, 'name', name, 'bytes', bytes,
  'committed', head, 'committed_chain', chain)
return {'ok'}
