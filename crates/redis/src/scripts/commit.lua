-- Lets readers see up to a head that is durable by now.
-- KEYS  lease, tip, log     ARGV  epoch, nonce, head
-- Returns {"ok"} or {"fenced"}
local held = redis.call('HMGET', KEYS[1], 'epoch', 'nonce')
local tip = redis.call('HMGET', KEYS[2], 'head', 'committed', 'chain')
if held[1] ~= ARGV[1] or held[2] ~= ARGV[2] or not tip[1] or ARGV[3] > tip[1] then
  return {'fenced'}
end
if tip[2] and ARGV[3] <= tip[2] then return {'ok'} end
local chain = tip[3]
if ARGV[3] ~= tip[1] then
  local at = redis.call('XRANGE', KEYS[3], ARGV[3], ARGV[3])[1]
  if not at then return {'fenced'} end
  chain = string.sub(at[2][2], 57, 88)
end
redis.call('HSET', KEYS[2], 'committed', ARGV[3], 'committed_chain', chain)
return {'ok'}
