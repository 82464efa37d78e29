/**
 * Makes Firn's ids in this process, under a lease of a worker, as docs/leases.md specifies: Node 18 or later, no dependencies.
 *
 *     import { Lease } from './firn_lease.mjs'
 *     const ids = new Lease(['http://10.0.0.1:7070', 'http://10.0.0.2:7070'], { pool: 'default', token: process.env.TOKEN })
 *     const id = await ids.next() // a BigInt that no other process makes; its text is String(id)
 *     ids.close()
 *
 * A Lease serves all of one thread; each worker thread needs its own. TypeScript's types are in firn_lease.d.mts.
 */
import { randomBytes } from 'node:crypto'
import process from 'node:process'
import { setTimeout as sleep, setImmediate as turn } from 'node:timers/promises'

/** No id can be made: the message says why. */
export class LeaseError extends Error {
  name = 'LeaseError'
}

class Lost extends Error {}

const now = () => process.hrtime.bigint() // monotonic; the wall clock may be wrong, and is never read

export class Lease {
  #servers; #pool; #token; #timeout
  #grant; #pid // a process with another id takes a lease of its own
  #run // the background's; another one has taken over when this has changed
  #why // undefined: no server has answered yet
  #asking = false // for a lease
  #turned = now() // when the event loop last got its turn
  #asked = 0n // when the last request that counts began: see docs/leases.md
  #closed = false

  /**
   * The servers share one store. `timeout` is how long a call waits for an id, in milliseconds. By default it is 10,000, and
   * 40,000 while a server is asked for a lease: for up to 24 seconds after its store was restarted it waits before it answers.
   */
  constructor(servers, { pool = 'default', token, timeout } = {}) {
    if (!Array.isArray(servers) || servers.length === 0) throw new TypeError("servers must be a list of URLs, as ['http://127.0.0.1:7070']")
    for (const s of servers) if (!/^https?:$/.test(new URL(s).protocol)) throw new TypeError(`server ${s} must be a URL, as http://127.0.0.1:7070`)
    if (timeout !== undefined && !(timeout >= 0)) throw new RangeError(`timeout is ${timeout}; it is a number of milliseconds`)
    this.#servers = servers.map(s => s.replace(/\/+$/, ''))
    this.#pool = pool
    this.#token = token
    this.#timeout = timeout
  }

  /** Resolves to an id, and waits for one if it must. */
  async next() {
    for (const began = performance.now(); ;) {
      if (now() - this.#turned > 1_000_000n) { // else a loop of next() would starve the background
        await turn()
        this.#turned = now()
      }
      if (this.#closed) throw new LeaseError('the lease is closed')
      if (this.#pid !== process.pid) this.#begin()
      const t = now(), late = t - this.#asked > this.#grant?.patience // the event loop was blocked: the lease may be lost
      const id = late ? undefined : this.#grant?.make(t)
      if (id !== undefined) return id
      const left = began + (this.#timeout ?? (this.#asking || this.#grant && !late ? 40_000 : 10_000)) - performance.now()
      if (left <= 0) throw new LeaseError(`no lease of pool ${this.#pool} allows an id now: ${late ? 'the event loop was blocked for too long' : this.#why ?? 'no server has answered yet'}`)
      await sleep(Math.min(left, this.#grant?.pause(t) ?? 20, 20))
    }
  }

  /** Resolves to a list of n ids. */
  async take(n) {
    const ids = []
    while (ids.length < n) ids.push(await this.next())
    return ids
  }

  /** Makes no more ids. Others get the worker when the lease has ended. */
  close() {
    this.#closed = true
    this.#run = this.#grant = undefined
  }

  #begin() {
    this.#pid = process.pid
    this.#grant = undefined
    this.#background(this.#run = {})
  }

  /** Takes a lease and renews it. After any failure it asks the next server, after a round of all in a second. */
  async #background(run) {
    for (let failed = 0, at = 0; this.#run === run;) {
      const server = this.#servers[at], asked = now()
      if (this.#grant?.ended(asked)) this.#grant = undefined
      const g = this.#grant
      let pause, counts = true
      this.#asking = !g
      try {
        const answer = await this.#ask(server, g)
        if (this.#run !== run) return
        if (g) g.renew(answer, asked)
        else this.#grant = new Grant(answer)
        pause = this.#grant.look - Number(now() - asked) / 1e6
        failed = 0
        this.#why = 'its server allows none yet'
      } catch (e) {
        if (this.#run !== run) return
        this.#why = `${server}: ${e.cause?.message || e.message}`
        if (e instanceof Lost) {
          this.#grant = undefined
          pause = g.renewed ? 0 : 1000
        } else {
          at = (at + 1) % this.#servers.length
          pause = ++failed % this.#servers.length ? 0 : 1000
          counts = !(now() - this.#asked > g?.patience)
        }
      }
      this.#asking = !this.#grant && pause === 0 // at once, the next server
      if (counts) this.#asked = g ? asked : now()
      if (pause > 0) await sleep(pause, undefined, { ref: false }) // a program may end meanwhile
    }
  }

  async #ask(server, g) {
    const headers = {}
    if (this.#token) headers.Authorization = `Bearer ${this.#token}`
    if (g) headers['Firn-Lease'] = g.lease
    const once = randomBytes(8).toString('hex')
    const url = `${server}/v1/leases/${encodeURIComponent(this.#pool)}${g ? `/renew?end=${g.end}&` : '?'}once=${once}`
    const r = await fetch(url, { method: 'POST', headers, redirect: 'manual', signal: AbortSignal.timeout(g ? 2000 : 35_000) })
    const text = await r.text()
    let a
    try {
      a = JSON.parse(text)
    } catch { // a proxy's page
    }
    if (r.status === 200 && /^[!-~]+$/.test(a?.lease) && typeof a.lease === 'string' && (!g || a.lease === g.lease)) {
      if (a.once !== once) throw new LeaseError('its answer is to another request: is there a cache in front of it?')
      return a
    }
    if (g && r.status === 410 && a?.error?.code === 'lease_lost') throw new Lost(a.error.message)
    throw new LeaseError(a?.error?.message ?? `status ${r.status}, and no answer to this request`)
  }
}

/** The positions [p + 1, end) of one worker, and a clock that never goes back. */
class Grant {
  renewed = false
  #p; #shown; #held; #at; #unit; #bits; #mask; #time; #sequence; #base

  constructor(a) {
    this.lease = a.lease
    this.look = small(a, 'look_ms', 1, 2 ** 31 - 1)
    // Two requests without an answer and the pause between them take 5 seconds, and timers are late.
    this.patience = BigInt(Math.max(this.look, 3000) + 3500) * 1_000_000n
    this.end = number(a, 'end')
    this.#p = number(a, 'first') - 1n
    this.#shown = this.#held = number(a, 'clock')
    this.#at = now()
    this.#unit = number(a, 'unit_ns', 1n)
    this.#bits = BigInt(small(a, 'sequence_bits'))
    this.#mask = (1n << this.#bits) - 1n
    this.#time = BigInt(small(a, 'time_shift'))
    this.#sequence = BigInt(small(a, 'sequence_shift'))
    this.#base = number(a, 'base')
  }

  /** The server's clock, but while that is behind, this clock's own at half its speed. */
  #clock(t) {
    const server = this.#shown + this.#ticks(t - this.#at), own = this.#held + this.#ticks((t - this.#at) / 2n)
    return server > own ? server : own
  }

  #ticks(elapsed) {
    return elapsed / this.#unit << this.#bits
  }

  ended(t) {
    return this.#clock(t) >= this.end
  }

  renew(a, asked) {
    const clock = number(a, 'clock'), end = number(a, 'end'), t = now()
    this.renewed = true
    if (end > this.end) this.end = end
    if (this.#clock(asked) - clock > this.#ticks(9_000_000_000n + this.#unit)) throw new Lost("the server's clock is more than 9 seconds behind this client's")
    const own = this.#clock(t), latest = clock + this.#ticks(t - asked + this.#unit)
    if (own >= clock && own <= latest) return
    this.#held = own
    this.#shown = own < clock ? clock : latest
    this.#at = t
  }

  /** An id, or undefined if there is none before the next tick or after the end. It is one step: nothing here may wait. */
  make(t) {
    const clock = this.#clock(t), after = this.#p + 1n
    const q = after > clock ? after : clock, tick = q >> this.#bits
    if (q >= this.end || tick > clock >> this.#bits) return undefined
    this.#p = q
    return tick << this.#time | (q & this.#mask) << this.#sequence | this.#base
  }

  /** The milliseconds to the next tick. */
  pause(t) {
    return Number(this.#unit - (t - this.#at) % this.#unit) / 1e6
  }
}

function number(a, name, least = 0n) {
  const text = a[name]
  const n = typeof text === 'string' && /^(0|[1-9][0-9]{0,18})$/.test(text) ? BigInt(text) : -1n
  if (n < least || n >= 1n << 63n) throw new LeaseError(`its answer has ${name} ${JSON.stringify(text)}, which must be the text of a number below 2^63`)
  return n
}

function small(a, name, least = 0, most = 62) {
  const n = a[name]
  if (!Number.isInteger(n) || n < least || n > most) throw new LeaseError(`its answer has ${name} ${JSON.stringify(n)}, which must be a number from ${least} to ${most}`)
  return n
}
