-- Appends a batch if the lease is current and the head has not moved. Decides nothing about tickets.
-- KEYS  lease, tip, log
-- ARGV  epoch, nonce, name (epoch and number), expected head, new head, events, chain before,
--       record (its header holds the new chain), now or "", "1" to commit at once, bytes of a header
-- Returns {"ok"}, {"again", head, chain}, {"stale", head}, {"fenced", epoch}, {"chain", chain},
--       {"empty"}, {"other"} or {"below"}
-- Numbers are digits of one length, so that comparing text compares numbers, in every locale.
-- Keeps append_refuses_a_stale_head, append_is_fenced_without_the_current_lease,
--       a_retry_returns_its_own_head, a_retry_must_be_the_same_batch, batch_numbers_go_up
local held = redis.call('HMGET', KEYS[1], 'epoch', 'nonce', 'released')
if held[1] ~= ARGV[1] or held[2] ~= ARGV[2] or held[3] ~= '0' then
  return {'fenced', held[1] or '0'}
end
if tonumber(ARGV[6]) == 0 then return {'empty'} end
local tip = redis.call('HMGET', KEYS[2], 'head', 'chain', 'name', 'bytes')
local head_bytes = tonumber(ARGV[11])
if tip[3] and ARGV[3] <= tip[3] then
  -- Names rise with heads: the batch of that name is found by halving.
  local low, high = 1, tonumber(tip[1])
  while low <= high do
    local middle = math.floor((low + high) / 2)
    local found = redis.call('XRANGE', KEYS[3], string.format('%.0f', middle), '+', 'COUNT', 1)[1]
    local name = found and string.sub(found[2][2], 1, 28)
    if name == ARGV[3] then
      local stored, sent = found[2][2], ARGV[8]
      if string.sub(stored, 29, 44) ~= string.sub(sent, 29, 44) then return {'below'} end
      if string.sub(stored, 53, 56) ~= string.sub(sent, 53, 56)
        or string.sub(stored, head_bytes + 1) ~= string.sub(sent, head_bytes + 1) then
        return {'other'}
      end
      -- Written once more, so that waiting for replicas waits for what came before, too.
      redis.call('HSET', KEYS[2], 'name', tip[3])
      return {'again', string.match(found[1], '^%d+'), string.sub(stored, 57, 88)}
    elseif name and name < ARGV[3] then
      low = tonumber(string.match(found[1], '^%d+')) + 1
    else
      high = middle - 1
    end
  end
  return {'below'}
end
if (tip[1] or string.rep('0', 20)) ~= ARGV[4] then return {'stale', tip[1] or '0'} end
if (tip[2] or string.rep('\0', 32)) ~= ARGV[7] then return {'chain', tip[2] or string.rep('\0', 32)} end
local now = ARGV[9]
if now == '' then
  local time = redis.call('TIME')
  now = string.format('%.0f', time[1] * 1000 + math.floor(time[2] / 1000))
end
local bytes = string.format('%.0f', tonumber(tip[4] or '0') + #ARGV[8] - head_bytes)
-- The entry first: a server that is full refuses it before anything was written.
redis.call('XADD', KEYS[3], ARGV[5] .. '-0', 'b', ARGV[8], 't', now, 'y', bytes)
local chain = string.sub(ARGV[8], 57, 88)
redis.call('HSET', KEYS[2], 'head', ARGV[5], 'chain', chain, 'name', ARGV[3], 'bytes', bytes)
if ARGV[10] == '1' then
  redis.call('HSET', KEYS[2], 'committed', ARGV[5], 'committed_chain', chain)
end
return {'ok'}
