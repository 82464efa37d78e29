// Requests to the server. All addresses are relative: a proxy may serve the page below a prefix.
import { tab } from './kept.js'

export class Failure extends Error {
  constructor(status, code, message) {
    super(message)
    this.status = status
    this.code = code
  }
}

let token = tab.get('token')
export const hasToken = () => token !== ''
export function setToken(text) {
  token = text.trim()
  tab.set('token', token)
}

async function request(path, options = {}) {
  const headers = { ...options.headers }
  if (token) headers.Authorization = 'Bearer ' + token
  let answer
  try {
    answer = await fetch(path, { ...options, headers, cache: 'no-store', credentials: 'same-origin' })
  } catch (err) {
    if (err.name === 'AbortError') throw err
    if (err instanceof TypeError && /header|ISO-8859-1|ByteString/i.test(err.message)) throw new Failure(401, 'unauthorized', err.message)
    throw new Failure(0, 'lost', err.message)
  }
  if (answer.ok) return answer
  let body
  try { body = (await answer.json()).error } catch { /* not of this server */ }
  throw new Failure(answer.status, body?.code ?? 'http', body?.message ?? `${answer.status} ${answer.statusText}`)
}

const json = async (path, options) => (await request(path, options)).json()

export const decode = (id, query, signal) => json('v1/decode/' + encodeURIComponent(id) + search(query), { signal })
export const workers = (pool, signal) => json(`v1/pools/${encodeURIComponent(pool)}/workers`, { signal })
export const release = (pool, slot) => json(`v1/pools/${encodeURIComponent(pool)}/workers/${slot.worker}/release?datacenter=${slot.datacenter}`, { method: 'POST' })
export const examined = (signal) => json('v1/store', { signal })
export const makeIDs = (namespace, count) =>
  json(`v1/ids/${encodeURIComponent(namespace)}?count=${count}`, { method: 'POST' })

function search(query) {
  const text = new URLSearchParams(Object.entries(query ?? {}).filter(([, value]) => value)).toString()
  return text && '?' + text
}

// silence is after how long without a state the connection counts as lost; the server sends one each second.
const silence = 5000

// events calls state with each state, of all namespaces or of one only, until signal is aborted. It returns when the stream ends, and throws a Failure if it
// is refused or breaks off.
export async function events(signal, only, state) {
  const silent = new AbortController()
  const stop = () => silent.abort()
  signal.addEventListener('abort', stop)
  let timer = setTimeout(stop, silence)
  try {
    const answer = await request('v1/events' + search({ namespace: only }), { signal: silent.signal })
    const reader = answer.body.pipeThrough(new TextDecoderStream()).getReader()
    let text = ''
    for (;;) {
      const { value, done } = await reader.read()
      if (done) return
      clearTimeout(timer)
      timer = setTimeout(stop, silence)
      text += value
      for (let end; (end = text.indexOf('\n\n')) >= 0; text = text.slice(end + 2)) {
        const [name, data] = text.slice(0, end).split('\n').map((line) => line.slice(line.indexOf(':') + 2))
        const body = JSON.parse(data)
        if (name === 'error') throw new Failure(401, body.error.code, body.error.message)
        state(body)
      }
    }
  } catch (err) {
    if (err instanceof Failure) throw err
    if (signal.aborted) return
    throw new Failure(0, 'lost', err.message)
  } finally {
    clearTimeout(timer)
    signal.removeEventListener('abort', stop)
  }
}

let known
export const layouts = () => (known ??= fetch(new URL('layouts.json', import.meta.url)).then((answer) => answer.json()))
