// Tries the server at 127.0.0.1:PORT with ioredis and node-redis. Their numbers are
// JavaScript's, which are exact up to 2^53: 64-bit ids are to be taken as texts.
import assert from 'node:assert'
import { createRequire } from 'node:module'

const require = createRequire(process.argv[2] + '/')
const port = Number(process.argv[3])
const { Redis } = require('ioredis')
const { createClient, RESP_TYPES } = require('redis')

const rising = ids => ids.every((id, i) => i === 0 || BigInt(ids[i - 1]) < BigInt(id))

async function tryIoredis () {
  const r = new Redis({ port, stringNumbers: true })
  const first = Number(await r.incr('items'))
  assert.equal(await r.incr('items'), String(first + 1))
  assert.equal(await r.incrby('items', 10), String(first + 11))
  const results = await r.pipeline(Array.from({ length: 100 }, () => ['incr', 'orders'])).exec()
  assert(results.every(([error]) => error === null))
  assert(rising(results.map(([, id]) => id)))
  assert.equal((await r.multi().incr('items').incr('items').exec())[1][1], String(first + 13))
  const ids = await r.call('FIRN.NEXT', 'orders', 'COUNT', 1000)
  assert.equal(ids.length, 1000)
  assert(rising(ids))
  const fields = await r.call('FIRN.DECODE', 'orders', ids[0])
  assert.equal(fields[fields.indexOf('id') + 1], ids[0])
  assert.match((await r.call('FIRN.NEXT', 'uid'))[0], /^[0-9a-f-]{36}$/)
  await assert.rejects(r.incr('nothere'), /^ReplyError: FIRN unknown_namespace: /)
  await r.quit()
}

async function tryNodeRedis (RESP) {
  const client = createClient({ socket: { port }, RESP, name: 'till' })
  client.on('error', error => { throw error })
  await client.connect()
  const r = client.withTypeMapping({ [RESP_TYPES.NUMBER]: String })
  const first = Number(await r.incr('items'))
  assert.equal(await r.incrBy('items', 10), String(first + 10))
  const piped = await Promise.all(Array.from({ length: 100 }, () => r.incr('orders')))
  assert(rising(piped))
  assert.equal((await client.multi().incr('items').incr('items').exec())[1], first + 12)
  const ids = await r.sendCommand(['FIRN.NEXT', 'orders', 'COUNT', '1000'])
  assert.equal(ids.length, 1000)
  assert(rising(ids))
  const fields = await r.sendCommand(['FIRN.DECODE', 'orders', ids[0]])
  assert.equal(RESP === 3 ? fields.id : fields[fields.indexOf('id') + 1], ids[0])
  await assert.rejects(r.incr('nothere'), /FIRN unknown_namespace: /)
  await client.close()
}

await tryIoredis()
await tryNodeRedis(2)
await tryNodeRedis(3)
console.log('ok')
