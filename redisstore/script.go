package redisstore

import "github.com/redis/go-redis/v9"

// replicas begins both scripts that write. They read the replicas and the record at the moment of the
// write, so that no replica can attach in between. Running a script again changes nothing. KEYS: the set.
// ARGV: the caller's record of the replicas, the place of the server, then the script's own arguments. The place is 'single', or 'cluster', where the script creates no set, or 'alone', a
// cluster's only server with keys of the slot; with 'look' the script only reads. The answer to 'look' is
// a [look]; otherwise it is an error, and nothing was written, or
//
//	{the record of the replicas that must have it, synchronizations, commands, addresses, replication id, life of the store}
//
// The process, its history, the last lowering, and in a cluster the configuration epoch of the server
// name the life. No two primaries have the same replication id, as a promoted process begins another
// history. But a former primary of a cluster that wins its slots back was never a replica: only its epoch
// has changed.
//
// The record of the replicas is the member "\treplicas N SINCE [AT]": the greatest number of replicas ever
// attached at one time, when an operator last lowered it, in microseconds, or 0, and for an N of 0 the
// replication id of the server where. Of two records the later one counts, and of two with the same SINCE
// the greater N. But a handle's own record never lowers N: it may come from the other side of a split,
// where N was lowered.
//
// A server that was promoted had a primary, which may still be alive and confirm by itself. If the set has
// no record, or one of 0 replicas from another history, that primary may wait for no replica. So the
// promoted one waits for one more than it has. What a handle knows does not count: it has counted the
// replicas of this side only.
//
// Some replicas in INFO may only be loading, perhaps for long. A replica is online if it has acknowledged
// something since it was attached. Programs that read the stream and never acknowledge (redis-cli
// --replica) have no port, and do not count.
//
// A replica that is back after its host died is listed twice for a minute, until the server notices that
// the earlier connection is dead. Counted twice, it would make writes wait for one replica too many from
// then on. So all silent connections from one address count as one replica, together with one that
// answers there. A connection is silent if it has not acknowledged for three seconds, or since the
// server's clock was set back by two seconds. One that has just acknowledged is listed with a lag of -1 in
// the first milliseconds of a second, as the server reads the time from two clocks. Living replicas
// acknowledge each second, and so count even if address translation gives several the same address. A
// replica that is back within three seconds looks like two for that time. So each write waits for all
// replicas that are online, but the record rises at once only by addresses; a second replica of one
// address raises it when both have acknowledged a write.
//
// WAIT counts connections, and a dead one may have acknowledged the write before it died. If its replica
// connects again while a write waits, it acknowledges twice, perhaps in the place of another that is away.
// Each new connection synchronizes first, in full or in part, and the server counts that. So a write is
// confirmed only if that number has not changed, nor was reset (then the number of commands is smaller).
// Otherwise it is repeated with data of its own, which no dead connection can acknowledge. Statistics that
// are reset at the right moments hide that, so it is also repeated if the server showed fewer addresses of
// replicas than must have it, before the wait or after it.
const replicas = `
local info = redis.call('INFO', 'replication')
local primary = string.find(info, 'role:master', 1, true)
local _, id = string.find(info, 'master_replid:', 1, true)
id = string.sub(info, id + 1, id + 40)
local answering, attached, addresses = {}, 0, 0 -- connections of replicas, by address
local at = string.find(info, 'slave0:', 1, true) -- plain searches are ten times as quick as patterns
if at then
  for line in string.gmatch(string.sub(info, at), 'slave%d+:[^\r]*') do
    if string.find(line, 'state=online', 1, true) and not string.find(line, 'offset=0,', 1, true) then
      local address, lag = string.match(line, 'ip=(.-),state=.*,lag=(%-?%d+)')
      address, lag = address or line, tonumber(lag or 0)
      attached = attached + 1
      if not answering[address] then addresses = addresses + 1 end
      answering[address] = (answering[address] or 0) + (lag >= -1 and lag < 3 and 1 or 0)
    elseif not string.find(line, ',port=0,', 1, true) then
      attached = attached + 1
    end
  end
end
local online = 0
for _, n in pairs(answering) do online = online + math.max(n, 1) end
local syncs, commands = 0, 0
if at then -- INFO stats takes long
  local stats = redis.call('INFO', 'stats')
  local function stat(name)
    local _, found = string.find(stats, '\n' .. name .. ':', 1, true)
    return tonumber(string.match(stats, '^%d+', found + 1))
  end
  syncs, commands = stat('sync_full') + stat('sync_partial_ok'), stat('total_commands_processed')
end
local recorded, another = unpack(redis.call('ZRANGEBYLEX', KEYS[1], '[\treplicas ', '(\treplicas!', 'LIMIT', 0, 2))
if another then return redis.error_reply('TWICE the record of replicas') end
local there, lowered, at = string.match(recorded or '\treplicas 0 0', '^\treplicas (%d+) (%d+) ?(%w*)$')
if not there or #there + #lowered > 19 then -- more digits than numbers here have
  return redis.error_reply('RECORD ' .. string.sub(recorded, 2, 40))
end
there, lowered = tonumber(there), tonumber(lowered)
local n, since = tonumber(ARGV[1]), tonumber(ARGV[2])
if lowered > since then
  n, since = there, lowered
else
  n = math.max(n, there)
  if since > lowered then at = ARGV[3] end -- the set was removed, or replaced by an older copy
end
if at == '' then at = '-' end
local decided = there > 0 or since > 0 and (n > 0 or at == id)
local promoted = primary and not decided and not string.find(info, 'second_repl_offset:-1', 1, true)
if promoted then n = math.max(n, 1 + addresses) end
if ARGV[4] == 'look' then
  return {n, since, at, syncs, commands, id, attached, online, addresses, primary and 1 or 0, promoted and 1 or 0}
end
if not primary then
  return redis.error_reply('READONLY it is a replica')
end
if redis.call('ZCOUNT', KEYS[1], '-inf', '(0') + redis.call('ZCOUNT', KEYS[1], '(0', '+inf') > 0 then
  return redis.error_reply('SCORE a member has a score that is not 0')
end
local server, epoch = redis.call('INFO', 'server'), ''
if ARGV[4] == 'single' and string.find(server, 'redis_mode:cluster', 1, true) then -- since the store was opened
  return redis.error_reply('ISCLUSTER it may move the set')
end
if ARGV[4] ~= 'single' then
  local nodes = redis.call('CLUSTER', 'NODES')
  if string.find(nodes, '[' .. redis.call('CLUSTER', 'KEYSLOT', KEYS[1]) .. '->-', 1, true) then
    return redis.error_reply('MOVING the slot')
  end
  local _, self = string.find(nodes, ' myself,', 1, true) -- a host name may contain myself
  epoch = '/' .. string.match(nodes, '^%S* %S+ %d+ %d+ (%d+)', self + 1) -- its primary, when it pinged and ponged
end
if ARGV[4] == 'cluster' and not redis.call('ZRANGEBYLEX', KEYS[1], '-', '+', 'LIMIT', 0, 1)[1] then
  return redis.error_reply('EMPTY there is no set')
end
-- A script is not rolled back. So these two, which change nothing, find what the server may
-- refuse before anything is written: permissions, memory, disk.
redis.call('ZADD', KEYS[1], 'XX', 0, '')
redis.call('ZREM', KEYS[1], '')
n = math.max(n, addresses)
local _, run = string.find(server, 'run_id:', 1, true)
run = string.sub(server, run + 1, run + 40)
local function done(wrote)
  local member = string.format('\treplicas %.0f %.0f', n, since)
  if n == 0 then member = member .. ' ' .. at end
  if member ~= recorded and (n > 0 or since > 0) then
    redis.call('ZADD', KEYS[1], 0, member)
    if recorded then redis.call('ZREM', KEYS[1], recorded) end
  elseif not wrote then -- so that WAIT has something to wait for
    redis.call('ZADD', KEYS[1], 0, '')
    redis.call('ZREM', KEYS[1], '')
  end
  local life = run .. '/' .. id .. epoch
  if since > 0 then life = life .. string.format('/%.0f', since) end
  return {n, since, at, syncs, commands, addresses, id, life}
end
`

// compareAndSwap writes a register. ARGV: key, old revision or nothing, new revision, value. A second
// run finds its own new revision, which is drawn at random.
var compareAndSwap = redis.NewScript(replicas + `
local head = ARGV[5] .. '\0'
local found, second = unpack(redis.call('ZRANGEBYLEX', KEYS[1], '[' .. head, '(' .. ARGV[5] .. '\1', 'LIMIT', 0, 2))
if second then return redis.error_reply('TWICE it has two members') end
local revision = ''
if found then revision = string.sub(found, #head + 1, #head + 16) end
if revision ~= ARGV[7] then
  if revision ~= ARGV[6] then return redis.error_reply('CONFLICT it has another revision') end
  redis.call('ZADD', KEYS[1], 0, head .. ARGV[7] .. '\n' .. ARGV[8])
  if found then redis.call('ZREM', KEYS[1], found) end
end
return done(revision ~= ARGV[7])
`)

// setReplicas sets N. ARGV: N, a deadline in microseconds, the run id of the checked server.
var setReplicas = redis.NewScript(replicas + `
if run ~= ARGV[7] then return redis.error_reply('OTHER another server is the primary now') end
local to = tonumber(ARGV[5])
if to < online then return redis.error_reply('ONLINE ' .. online) end
if to < n then
  local time = redis.call('TIME')
  local now = time[1] * 1000000 + time[2]
  if now > tonumber(ARGV[6]) then return redis.error_reply('LATE another server may be the primary now') end
  since = math.max(since + 1, now)
end
n, at = to, id
return done()
`)

// touch writes something that a replica acknowledges, and changes nothing.
var touch = redis.NewScript(`
redis.call('ZADD', KEYS[1], 0, '')
return redis.call('ZREM', KEYS[1], '')
`)
