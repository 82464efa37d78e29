// Prints ids, each once it is made. With "speed": prints how many a second.
import { pathToFileURL } from 'node:url'
const { Lease, LeaseError } = await import(pathToFileURL(`${process.argv[2]}/firn_lease.mjs`))

const ids = new Lease(process.argv[3].split(','), { pool: process.argv[4], timeout: 1000 })
if (process.argv[5]) {
  let n = 0
  for (const start = performance.now(); performance.now() < start + 3000; n += 1000) {
    for (let i = 0; i < 1000; i++) await ids.next()
  }
  console.log(n / 3)
  ids.close()
  process.exit()
}
let ended = false
process.on('SIGTERM', () => { ended = true })
while (!ended) {
  try {
    const made = [await ids.next(), ...await ids.take(20)]
    process.stdout.write(made.join('\n') + '\n') // less than 4,096 bytes: in one piece
  } catch (e) {
    if (!(e instanceof LeaseError)) throw e
    console.error(e.message)
  }
  await new Promise(resolve => setTimeout(resolve, 10))
}
ids.close()
process.exit()
