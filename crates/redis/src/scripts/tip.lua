-- Where a log stands for whoever may know that more is durable than was told to all.
-- KEYS  lease, tip, log     ARGV  epoch and head that the reader knows to be durable
-- Returns {head, chain, committed head, chain there}
local zero, start = string.rep('0', 20), string.rep('\0', 32)
local tip = redis.call('HMGET', KEYS[2], 'head', 'chain', 'committed', 'committed_chain')
local head, chain = tip[1] or zero, tip[2] or start
local limit, there = tip[3] or zero, tip[4] or start
if redis.call('HGET', KEYS[1], 'epoch') == ARGV[1] and ARGV[2] > limit then
  if ARGV[2] >= head then return {head, chain, head, chain} end
  -- Durable and not told yet, so not trimmed either.
  local at = redis.call('XRANGE', KEYS[3], ARGV[2], ARGV[2])[1]
  if at then limit, there = ARGV[2], string.sub(at[2][2], 57, 88) end
end
return {head, chain, limit, there}
