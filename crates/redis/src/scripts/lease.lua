-- Grants a lease under a new epoch, unless somebody else holds it.
-- KEYS  lease, tip     ARGV  who, now or "", ttl in ms, nonce, highest epoch
-- Returns {"ok", epoch, head, chain}, {"held", who, ms left} or {"used"}
-- Keeps a_lease_has_one_holder, epochs_never_go_down, the_holder_who_asks_again_gets_a_new_epoch
local now, ttl = tonumber(ARGV[2]), tonumber(ARGV[3])
if not now then
  local time = redis.call('TIME')
  now = time[1] * 1000 + math.floor(time[2] / 1000)
end
local held = redis.call('HMGET', KEYS[1], 'epoch', 'who', 'until', 'ttl', 'released')
local epoch = 1
if held[1] then
  local ends = tonumber(held[3])
  -- Longer to go than it was granted for: the server's clock went back, or another server took
  -- over. It costs one ttl from now, not as long as the clocks differ.
  if ends - now > tonumber(held[4]) then
    ends = now + tonumber(held[4])
    redis.call('HSET', KEYS[1], 'until', string.format('%.0f', ends))
  end
  if held[5] == '0' and ends > now and held[2] ~= ARGV[1] then
    return {'held', held[2], string.format('%.0f', ends - now)}
  end
  epoch = tonumber(held[1]) + 1
end
if epoch > tonumber(ARGV[5]) then return {'used'} end
epoch = string.format('%.0f', epoch)
redis.call('HSET', KEYS[1], 'epoch', epoch, 'nonce', ARGV[4], 'who', ARGV[1],
  'until', string.format('%.0f', now + ttl), 'ttl', ARGV[3], 'released', '0')
local tip = redis.call('HMGET', KEYS[2], 'head', 'chain')
return {'ok', epoch, tip[1] or '0', tip[2] or string.rep('\0', 32)}
