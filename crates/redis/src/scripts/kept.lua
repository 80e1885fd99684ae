-- What is kept of a room and for whom, in one look.
-- KEYS  keep, tip, lease     ARGV  epoch and head that the reader knows to be durable
-- Returns {committed head or "", {field, value, …}}
local zero = string.rep('0', 20)
local tip = redis.call('HMGET', KEYS[2], 'head', 'committed')
if not tip[1] then return {'', {}} end
local limit = tip[2] or zero
if redis.call('HGET', KEYS[3], 'epoch') == ARGV[1] and ARGV[2] > limit then limit = ARGV[2] end
if limit > tip[1] then limit = tip[1] end
return {limit, redis.call('HGETALL', KEYS[1])}
