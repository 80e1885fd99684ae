-- The classic join: a number, a place in the sorted set, a session that ends by itself.
-- KEYS  counter, queue, session     ARGV  visitor, user, now in ms, session's life in s
-- Returns the number
local number = redis.call('INCR', KEYS[1])
redis.call('ZADD', KEYS[2], number, ARGV[1])
redis.call('HSET', KEYS[3],
  'user', ARGV[2],
  'room', 'spring-sale',
  'status', 'waiting',
  'number', number,
  'joined_at', ARGV[3],
  'last_seen', ARGV[3])
redis.call('EXPIRE', KEYS[3], ARGV[4])
return number
