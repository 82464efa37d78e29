// Arithmetic of ids and layouts, exact above 2^53.

const digits36 = '0123456789abcdefghijklmnopqrstuvwxyz'
const digits62 = '0123456789ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz'
const encodings = [
  ['decimal', digits62.slice(0, 10), 0],
  ['hex', digits36.slice(0, 16), 16],
  ['base32', '0123456789ABCDEFGHJKMNPQRSTVWXYZ', 13],
  ['base36', digits36, 13],
  ['base58', '123456789ABCDEFGHJKLMNPQRSTUVWXYZabcdefghijkmnopqrstuvwxyz', 11],
  ['base62', digits62, 11],
  ['base64', '-0123456789ABCDEFGHIJKLMNOPQRSTUVWXYZ_abcdefghijklmnopqrstuvwxyz', 11],
]

// encode returns an id in each encoding, in the form that the server writes.
export function encode(text) {
  const id = BigInt(text)
  const all = encodings.map(([name, digits, width]) => {
    const radix = BigInt(digits.length)
    let out = ''
    for (let left = id; left > 0n; left /= radix) out = digits[Number(left % radix)] + out
    return [name, out.padStart(Math.max(width, 1), digits[0])]
  })
  const bytes = id.toString(16).padStart(16, '0').match(/../g).map((byte) => parseInt(byte, 16))
  all.push(['base64url', btoa(String.fromCharCode(...bytes)).replaceAll('+', '-').replaceAll('/', '_').replace(/=+$/, '')])
  return all
}

export const isNumber = (text) => /^\d{1,19}$/.test(text) && BigInt(text) < 1n << 63n

// fields returns the fields of a layout from the highest bit, with the lowest bit of each.
export function fields(layout) {
  const order = layout.sequence_first ? ['time', 'sequence', 'datacenter', 'worker'] : ['time', 'datacenter', 'worker', 'sequence']
  let low = order.reduce((sum, name) => sum + layout[name], 0)
  return order.filter((name) => layout[name] > 0).map((name) => ({ name, bits: layout[name], low: (low -= layout[name]) }))
}

// take returns the fields of an id with their values.
export const take = (layout, text) =>
  fields(layout).map((f) => ({ ...f, value: (BigInt(text) >> BigInt(f.low)) & ((1n << BigInt(f.bits)) - 1n) }))

// momentOf returns Unix milliseconds of a tick, as a BigInt.
const momentOf = (layout, tick) => BigInt(layout.epoch_ms) + (tick * BigInt(layout.unit_ns)) / 1000000n

// moment returns the time in an id, null if a Date cannot hold it.
export function moment(layout, text) {
  const tick = take(layout, text).find((f) => f.name === 'time').value
  return dateOf(momentOf(layout, tick))
}
export const end = (layout) => dateOf(momentOf(layout, 1n << BigInt(layout.time)))
const dateOf = (ms) => (ms > 8640000000000000n ? null : new Date(Number(ms)))

// plausible reports whether a generator with this layout may have made an id: after half a year of its epoch, and not in the
// future.
export function plausible(layout, text, now = Date.now()) {
  const at = moment(layout, text)
  return at !== null && at.getTime() <= now + 86400000 && at.getTime() >= layout.epoch_ms + 15552000000 && at.getFullYear() >= 2006
}

export const totalBits = (layout) => layout.time + layout.datacenter + layout.worker + layout.sequence

// abilities are what a layout can do.
export function abilities(layout) {
  const ticks = 1e9 / Number(layout.unit_ns)
  return {
    end: end(layout),
    machines: 2 ** (layout.datacenter + layout.worker),
    perSecond: 2 ** layout.sequence * ticks,
    safe: totalBits(layout) <= 53,
  }
}
