// Prints ids, for check_client.py: python3 check_client.py --fork node javascript_ids.mjs
import { writeSync } from 'node:fs'
import { Lease, LeaseError } from '../javascript/firn_lease.mjs'

const ids = new Lease(process.argv[2].split(','), { pool: process.argv[3], token: process.argv[4], timeout: 500 })
process.stdin.on('end', () => process.exit())
let blocked = false
process.stdin.on('data', line => {
  blocked = String(line).trim() === 'block'
  if (!blocked) Object.defineProperty(process, 'pid', { value: process.pid + 1, configurable: true }) // Node cannot fork
})
for (;;) {
  for (const until = performance.now() + 7500; blocked && performance.now() < until;);
  blocked = false
  for (let i = 0; i < 510; i++) {
    try {
      const made = i < 500 ? [await ids.next()] : await ids.take(50)
      writeSync(1, made.map(id => `${id}\n`).join(''))
    } catch (e) {
      if (!(e instanceof LeaseError)) throw e
    }
  }
  await new Promise(resolve => setTimeout(resolve, 500))
}
