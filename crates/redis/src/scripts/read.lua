-- Reads whole batches that hold events from a head on, as far as they are durable.
-- KEYS  lease, tip, log, keep     ARGV  first head, bytes, epoch and head known to be durable,
--       bytes of a header
-- Returns {trimmed to, {id, record, time, id, record, time, …}}
local zero = string.rep('0', 20)
local tip = redis.call('HMGET', KEYS[2], 'head', 'committed')
local limit = tip[2] or zero
if redis.call('HGET', KEYS[1], 'epoch') == ARGV[3] and ARGV[4] > limit then limit = ARGV[4] end
if limit > (tip[1] or zero) then limit = tip[1] or zero end
local trimmed = redis.call('HGET', KEYS[4], 'trimmed') or zero
local found, from, bytes, most = {}, ARGV[1], 0, tonumber(ARGV[2])
if trimmed >= ARGV[1] or from > limit then return {trimmed, found} end
while true do
  local page = redis.call('XRANGE', KEYS[3], from, limit, 'COUNT', 16)
  for _, entry in ipairs(page) do
    local record = entry[2][2]
    local first = bytes == 0
    bytes = bytes + math.max(1, #record - tonumber(ARGV[5]))
    if not first and bytes > most then return {trimmed, found} end
    found[#found + 1] = entry[1]
    found[#found + 1] = record
    found[#found + 1] = entry[2][4]
  end
  if #page < 16 then return {trimmed, found} end
  from = '(' .. page[#page][1]
end
