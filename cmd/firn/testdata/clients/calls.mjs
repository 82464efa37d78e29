// Makes calls of ioredis and node-redis to the server at 127.0.0.1:PORT. The calls are the other
// arguments; of each it prints what comes back.
import { createRequire } from 'node:module'

const require = createRequire(process.argv[2] + '/')
const port = Number(process.argv[3])
const { Redis } = require('ioredis')
const { createClient, RESP_TYPES } = require('redis')

const ioredis = new Redis({ port, stringNumbers: true })
const connected = createClient({ socket: { port } })
await connected.connect()
const client = connected.withTypeMapping({ [RESP_TYPES.NUMBER]: String })
for (const call of process.argv.slice(4)) {
  try {
    // eslint-disable-next-line no-new-func
    console.log('ok', await new Function('ioredis', 'client', 'return ' + call)(ioredis, client))
  } catch (error) {
    const causes = (error.previousErrors ?? []).map(e => e.message)
    console.log('error', [error.message, ...causes].join(' ').replaceAll('\n', ' '))
  }
}
await ioredis.quit()
await connected.close()
