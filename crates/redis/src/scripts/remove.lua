-- Takes away all of a room but its lease, whose epochs go on.
-- KEYS  keep, tip, log, board, then its snapshots     ARGV  mark that was seen
-- Returns {"ok"} or {"changed"}
-- Keeps a_removed_room_is_as_if_it_never_was
if (redis.call('HGET', KEYS[1], 'mark') or '') ~= ARGV[1] then return {'changed'} end
for at = 1, #KEYS do redis.call('UNLINK', KEYS[at]) end
return {'ok'}
