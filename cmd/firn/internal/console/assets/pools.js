// The page of pools: the slots as a grid.
import { html, useEffect, useMemo, useRef, useState } from './vendor/preact-htm.js'
import { release, workers } from './api.js'
import { Facts, Problem, useAnswer } from './parts.js'
import { clockTime, duration, language, number, offset, t, time } from './texts.js'

// every is the pause between two looks at a pool, in milliseconds.
const every = 1000
// most is how many slots are drawn for workers that were never used; used ones always are.
const most = 1024

export function Pools({ live, chosen }) {
  const pools = useMemo(() => {
    const found = new Map()
    for (const ns of live.view.namespaces) if (ns.pool) found.set(ns.pool, ns)
    return found
  }, [live.view])
  if (!live.view.admin) return html`<h1>${t('pools')}</h1><p class="hint">${t('noAdmin')}</p>`
  const name = chosen || (pools.has('default') ? 'default' : pools.keys().next().value) || (live.view.dynamic ? 'default' : '')
  if (!name) return html`<h1>${t('pools')}</h1><p class="hint">${t('noPools')}</p>`
  const names = [...new Set([...pools.keys(), name])].sort()
  return html`<h1>${t('pools')}</h1>
    ${names.length > 1 && html`<nav class="tabs" aria-label=${t('pools')}>${names.map((one) => html`<a key=${one} href=${'#/pools/' + encodeURIComponent(one)}
      aria-current=${one === name ? 'true' : undefined}>${one}</a>`)}</nav>`}
    <${Pool} key=${name} name=${name} own=${pools.get(name)} />`
}

function Pool({ name, own }) {
  const { answer: pool, failure } = useAnswer((signal) => workers(name, signal), every, name)
  const [chosen, choose] = useState(null)
  const used = new Map(pool?.slots.map((slot) => [keyOf(slot), slot]))
  const states = {}
  const cells = pool ? cellsOf(pool, used).map(({ key, slot }) => {
    const state = slot ? (isOwn(slot, own) ? 'own' : slot.state) : 'never'
    states[state] = (states[state] ?? 0) + 1
    return { key, state }
  }) : []
  // Most seconds nothing changes, and Preact leaves alone what is the same object.
  const drawn = cells.map((cell) => cell.key + cell.state).join()
  const grid = useMemo(() => html`<${Grid} cells=${cells} chosen=${chosen} choose=${choose} />`, [drawn, chosen, language()])
  if (!pool) return failure ? html`<${Problem}>${failure.message}<//>` : html`<p class="hint">${t('connecting')}</p>`
  const holding = pool.slots.filter((slot) => slot.state === 'held' || slot.state === 'ahead').length
  states.never = pool.workers - pool.slots.length
  return html`<section class="card"><h2>${t('slotsOf', name)}</h2>
    ${failure && html`<${Problem}>${failure.message}<//>`}
    <p>${t('ofWorkers', number(holding), number(pool.workers))}${cells.length < pool.workers && ` · ${t('showing', number(most), number(pool.workers))}`}</p>
    <ul class="key">${['own', 'held', 'ahead', 'returned', 'released', 'expired', 'never'].filter((s) => states[s]).map((s) => html`<li key=${s}>
      <i class="slot ${s}"></i>${t(s)} <b>${number(states[s])}</b></li>`)}</ul>
    ${grid}
    ${chosen === null ? html`<p class="hint">${t('clickSlot')}</p>` : html`<${Slot} key=${chosen} worker=${chosen} slot=${used.get(chosen)} pool=${pool} own=${own} />`}
    <${Lately} pool=${pool} />
    <h3>${t('settings')}</h3>
    <${Facts} of=${[
      [t('layout'), pool.layout],
      [t('storeClock'), clockTime(new Date(pool.clock)) + (pool.clock_offset_seconds === undefined ? '' : ` (${t('storeOff', offset(pool.clock_offset_seconds))})`)],
      [t('fenceLeft'), own?.fence_seconds === undefined ? undefined : number(own.fence_seconds)],
      [t('worker'), own?.worker === undefined ? undefined : `${own.worker} (${t('own')})`],
      ['strict', pool.strict], [t('state'), t(pool.open ? 'opened' : 'closed')],
    ]} /></section>`
}

const keyOf = (slot) => `${slot.datacenter}/${slot.worker}`
// isOwn compares fences too: a layout may have several datacenters with a worker of this number.
const isOwn = (slot, own) => own?.worker === slot.worker && own?.fence === slot.fence

function cellsOf(pool, used) {
  const drawn = new Map()
  const several = pool.slots.some((slot) => slot.datacenter > 0)
  if (!several) for (let worker = 0; worker < Math.min(pool.workers, most); worker++) drawn.set(`0/${worker}`, undefined)
  for (const [key, slot] of used) drawn.set(key, slot)
  return [...drawn].map(([key, slot]) => ({ key, slot }))
}

// Grid is one stop of the tab key; the arrow keys move within it.
function Grid({ cells, chosen, choose }) {
  const [focus, setFocus] = useState(0)
  const move = (event) => {
    const row = rowOf(event.currentTarget)
    const by = { ArrowRight: 1, ArrowLeft: -1, ArrowDown: row, ArrowUp: -row, Home: -focus, End: cells.length - 1 - focus }[event.key]
    if (by === undefined) return
    event.preventDefault()
    const next = Math.min(Math.max(focus + by, 0), cells.length - 1)
    setFocus(next)
    event.currentTarget.children[next].focus()
  }
  return html`<div class="grid" role="group" aria-label=${t('clickSlot')} onKeyDown=${move}>
    ${cells.map(({ key, state }, i) => html`<button key=${key} type="button" class="slot ${state}" tabindex=${i === focus ? 0 : -1}
      aria-pressed=${key === chosen} aria-label=${`${label(key)}: ${t(state)}`} title=${`${label(key)}: ${t(state)}`}
      onClick=${() => { setFocus(i); choose(key) }}></button>`)}</div>`
}

const label = (key) => t('slot', key.startsWith('0/') ? key.slice(2) : key)

function rowOf(grid) {
  const top = grid.children[0].offsetTop
  let n = 1
  while (n < grid.children.length && grid.children[n].offsetTop === top) n++
  return n
}

function Slot({ worker, slot, pool, own }) {
  const place = useRef()
  useEffect(() => { place.current.scrollIntoView({ block: 'nearest' }) }, [worker])
  if (!slot) return html`<div class="inner" role="status" ref=${place}><h3>${label(worker)}</h3><p>${t('neverUsed')}</p></div>`
  const left = slot.until ? (Date.parse(slot.until) - Date.parse(pool.clock)) / 1000 : Infinity
  return html`<div class="inner" role="status" ref=${place}><h3>${label(worker)} · ${t(slot.state)}${isOwn(slot, own) ? ` · ${t('own')}` : ''}</h3>
    <${Facts} of=${[
      [t('holder'), slot.host], [t('process'), slot.pid], [t('until'), slot.until && time(slot.until)], [t('untilLeft'), duration(left)],
      [t('tick'), slot.fence], [t('since'), time(slot.since)], [t('seen'), time(slot.seen)], [t('owner'), slot.owner],
    ]} /><${Release} name=${pool.pool} slot=${slot} own=${isOwn(slot, own)} /></div>`
}

// Release takes the worker from its holder, once the user has read what happens.
function Release({ name, slot, own }) {
  const [asked, ask] = useState(false)
  const [done, setDone] = useState(null)
  const [failure, setFailure] = useState(null)
  const submit = async () => {
    ask(false)
    try {
      setDone(await release(name, slot))
      setFailure(null)
    } catch (err) {
      setFailure(err)
    }
  }
  const holds = slot.state === 'held' || slot.state === 'ahead' || slot.state === 'expired'
  return html`${failure && html`<${Problem}>${failure.message}<//>`}
    ${done && html`<p>${t('releaseDone', time(done.until ?? t('forever')))}</p>`}
    ${holds && !asked && html`<p><button type="button" onClick=${() => ask(true)}>${t('release')}</button></p>`}
    ${holds && asked && html`<div role="alertdialog" aria-label=${t('release')}><p>${t('releaseAsk', slot.worker, slot.host || slot.owner, slot.pid ?? '–', time(slot.until ?? t('forever')))}
        ${own && html` <b>${t('releaseOwn')}</b>`}</p>
      <p class="form"><button type="button" class="main" onClick=${submit}>${t('releaseDo', slot.worker)}</button>
        <button type="button" onClick=${() => ask(false)}>${t('cancel')}</button></p></div>`}`
}

// latelySeconds is how long a change of a slot is shown.
const latelySeconds = 3600

// latest returns who joined and left lately, as the slots tell: each has its latest holder only.
function latest(pool) {
  const all = [], now = Date.parse(pool.clock)
  const add = (slot, what, time) => {
    const at = Date.parse(time)
    if (now - at < latelySeconds * 1000) all.push({ slot, what, at })
  }
  for (const slot of pool.slots) {
    add(slot, 'joined', slot.since)
    if (slot.state === 'returned' || slot.state === 'released') add(slot, slot.state, slot.seen)
    if (slot.state === 'expired') add(slot, 'expired', slot.until)
  }
  return all.sort((a, b) => b.at - a.at).slice(0, 12)
}

const Lately = ({ pool }) => {
  const changes = latest(pool)
  return html`<h3>${t('lately')}</h3>${changes.length === 0 && html`<p class="hint">${t('latelyNone')}</p>`}
    <ul class="likely">${changes.map(({ slot, what, at }) => html`<li key=${what + keyOf(slot)}><span>${clockTime(new Date(at))}</span>
      <span>${label(keyOf(slot))} · ${t(what)} · ${slot.host || slot.owner}${slot.pid ? ` (${slot.pid})` : ''}</span></li>`)}</ul>`
}
