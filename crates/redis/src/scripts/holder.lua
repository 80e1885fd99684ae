-- Who holds a lease now.
-- KEYS  lease     ARGV  now or ""
-- Returns {} or {who, epoch, ms left}
local now = tonumber(ARGV[1])
if not now then
  local time = redis.call('TIME')
  now = time[1] * 1000 + math.floor(time[2] / 1000)
end
local held = redis.call('HMGET', KEYS[1], 'who', 'epoch', 'until', 'released')
if not held[1] or held[4] ~= '0' or tonumber(held[3]) <= now then return {} end
return {held[1], held[2], string.format('%.0f', tonumber(held[3]) - now)}
