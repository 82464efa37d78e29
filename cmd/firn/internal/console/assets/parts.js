// Parts that several pages have.
import { html, useEffect, useRef, useState } from './vendor/preact-htm.js'
import { t, number, compact } from './texts.js'

export function Copy({ text, label }) {
  const [said, say] = useState('')
  const copy = async () => {
    try {
      await navigator.clipboard.writeText(text)
      say(t('copied'))
    } catch {
      say(selected(text) ? t('copied') : t('copyFailed'))
    }
    setTimeout(() => say(''), 1500)
  }
  return html`<button type="button" class="copy" onClick=${copy} aria-label=${`${t('copy')} ${label ?? text}`}>
    <span aria-live="polite">${said || t('copy')}</span></button>`
}

// selected copies without the clipboard's interface, which browsers offer only over https and on loopback.
function selected(text) {
  const area = document.createElement('textarea')
  area.value = text
  document.body.append(area)
  area.select()
  const done = document.execCommand('copy')
  area.remove()
  return done
}

// useAnswer returns the latest answer of ask(signal), which is asked again every so many milliseconds while the page is
// visible, with the latest failure.
export function useAnswer(ask, every, ...of) {
  const [latest, setLatest] = useState({})
  useEffect(() => {
    const stop = new AbortController()
    let timer
    const look = async () => {
      if (document.visibilityState === 'visible') {
        try {
          const answer = await ask(stop.signal)
          setLatest({ answer })
        } catch (failure) {
          if (stop.signal.aborted) return
          setLatest((was) => ({ ...was, failure }))
        }
      }
      if (!stop.signal.aborted) timer = setTimeout(look, every)
    }
    look()
    return () => {
      stop.abort()
      clearTimeout(timer)
    }
  }, of)
  return latest
}

// Facts is a list of names and values. Pairs without a value are left out.
export const Facts = ({ of }) => html`<dl class="facts">
  ${of.filter(([, value]) => value !== undefined && value !== null && value !== '').map(([name, value]) => html`
    <div key=${name}><dt>${name}</dt><dd>${value}</dd></div>`)}</dl>`

export const Problem = ({ children }) => html`<p class="problem" role="alert">${children}</p>`

// Bits draws the bits of an id, coloured by field: 63 of them, the sign left out.
export const Bits = ({ fields }) => html`<div class="bits" role="img"
    aria-label=${fields.map((f) => `${t(f.name)}: ${f.value}`).join(', ')}>
  ${fields.map((f) => html`<div key=${f.name} class="field ${f.name}" style=${{ flexGrow: f.bits }}>
    <div class="cells">${bitsOf(f).map((bit, i) => html`<i key=${i} class=${bit === '1' ? 'one' : ''}></i>`)}</div>
    <span class="what">${t(f.name)}</span><span class="of">${t('bitCount', f.bits)}</span>
  </div>`)}</div>`

const bitsOf = (f) => f.value.toString(2).padStart(f.bits, '0').split('')

const colour = (name) => getComputedStyle(document.documentElement).getPropertyValue(name).trim()

// seconds are the distances of two times below a chart.
const seconds = [1, 5, 10, 30, 60, 300]

// Chart draws a rate over time.
export function Chart({ data, title }) {
  const place = useRef()
  const plot = useRef()
  useEffect(() => {
    const make = () => {
      plot.current?.destroy()
      const axis = { stroke: colour('--muted'), grid: { stroke: colour('--line'), width: 1 }, ticks: { show: false }, font: '11px system-ui' }
      plot.current = new globalThis.uPlot({
        width: place.current.clientWidth, height: 180, legend: { show: false }, cursor: { y: false, drag: { x: false, y: false } },
        scales: { y: { range: (_, low, high) => [0, Math.max(high * 1.1, 1)] } },
        axes: [
          { ...axis, size: 28, space: 70, incrs: seconds, values: (_, at) => at.map((s) => new Date(s * 1000).toISOString().slice(11, 19)) },
          { ...axis, size: 52, values: (_, all) => all.map((n) => compact(n)) },
        ],
        series: [{}, { stroke: colour('--accent'), fill: colour('--accent-soft'), width: 1.5, points: { show: false } }],
      }, [data.at, data.rate], place.current)
    }
    make()
    const sizes = new ResizeObserver(() => plot.current.setSize({ width: place.current.clientWidth, height: 180 }))
    sizes.observe(place.current)
    const dark = matchMedia('(prefers-color-scheme: dark)')
    dark.addEventListener('change', make)
    document.addEventListener('firn-theme', make)
    return () => {
      sizes.disconnect()
      dark.removeEventListener('change', make)
      document.removeEventListener('firn-theme', make)
      plot.current.destroy()
    }
  }, [data])
  useEffect(() => { plot.current?.setData([data.at, data.rate]) })
  const latest = data.rate.at(-1) ?? 0
  return html`<figure class="chart"><figcaption>${title}</figcaption>
    <div ref=${place} role="img" aria-label=${`${title}: ${number(latest, 1)}`}></div></figure>`
}

// Spark is a small line of the latest rates.
export function Spark({ rates }) {
  const shown = (rates ?? []).slice(-60)
  const high = Math.max(...shown, 1)
  const points = shown.map((r, i) => `${(i + 60 - shown.length) * 1.5},${(19 - (r / high) * 17).toFixed(1)}`).join(' ')
  return html`<svg class="spark" viewBox="0 0 90 20" aria-hidden="true"><polyline points=${points} /></svg>`
}
