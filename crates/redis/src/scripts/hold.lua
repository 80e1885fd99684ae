-- Renews a lease that is still the newest, or gives it back.
-- KEYS  lease     ARGV  epoch, nonce, now or "", ttl in ms or "" to give it back
-- Returns {"ok"} or {"lost", newest epoch}
-- Keeps a_renewed_lease_lasts_longer, a_lost_lease_cannot_be_renewed
local held = redis.call('HMGET', KEYS[1], 'epoch', 'nonce', 'released')
if held[1] ~= ARGV[1] or held[2] ~= ARGV[2] or held[3] ~= '0' then
  return {'lost', held[1] or '0'}
end
if ARGV[4] == '' then
  redis.call('HSET', KEYS[1], 'released', '1')
  return {'ok'}
end
local now = tonumber(ARGV[3])
if not now then
  local time = redis.call('TIME')
  now = time[1] * 1000 + math.floor(time[2] / 1000)
end
local ends = string.format('%.0f', now + tonumber(ARGV[4]))
redis.call('HSET', KEYS[1], 'until', ends, 'ttl', ARGV[4])
return {'ok'}
