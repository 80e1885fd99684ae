-- How much lies behind heads: bytes of payload, and when the oldest batch came.
-- KEYS  tip, log     ARGV  now or "", bytes of a header, heads
-- Returns {now, bytes, time, bytes, time, …}; a time of "" means that nothing lies behind
local now = ARGV[1]
if now == '' then
  local time = redis.call('TIME')
  now = string.format('%.0f', time[1] * 1000 + math.floor(time[2] / 1000))
end
local found, all = {now}, tonumber(redis.call('HGET', KEYS[1], 'bytes') or '0')
for at = 3, #ARGV do
  local oldest = redis.call('XRANGE', KEYS[2], '(' .. ARGV[at], '+', 'COUNT', 1)[1]
  if oldest then
    local before = tonumber(oldest[2][6]) - (#oldest[2][2] - tonumber(ARGV[2]))
    found[#found + 1] = string.format('%.0f', all - before)
    found[#found + 1] = oldest[2][4]
  else
    found[#found + 1] = '0'
    found[#found + 1] = ''
  end
end
return found
