// What the stream of events has sent, and the rates made of it.
import { events, Failure } from './api.js'

// longest is how many seconds of rates are kept.
const longest = 900

// mostSteps is how many steps are kept.
const mostSteps = 12

// secondsOf returns when the server looked at its counters.
const secondsOf = (view) => Date.parse(view?.counted) / 1000

export class Live {
  // view is the latest state; null before the first. status is connecting, live, lost, or refused with a failure.
  view = null
  status = 'connecting'
  failure = null
  rates = new Map() // by namespace: {at: seconds, rate: ids a second}
  steps = new Map() // by namespace of ranges: the latest steps, [{at, step}]
  #changed
  #stop = new AbortController()

  // was is an earlier one, whose rates go on. Only is the name of the one namespace to see, '' for all.
  constructor(changed, was, only = '') {
    this.#changed = changed
    this.only = only
    if (was) [this.view, this.rates, this.steps] = [was.view, was.rates, was.steps]
  }

  stop() { this.#stop.abort() }

  // run keeps a stream until stop. After a loss it tries again, after a refusal it ends.
  async run() {
    for (let pause = 500; !this.#stop.signal.aborted; pause = Math.min(pause * 2, 8000)) {
      try {
        await events(this.#stop.signal, this.only, (view) => {
          pause = 500
          this.#take(view)
        })
        this.status = 'lost'
      } catch (err) {
        if (!(err instanceof Failure)) throw err
        this.failure = err
        this.status = err.status === 401 || err.status === 403 ? 'refused' : 'lost'
      }
      if (this.#stop.signal.aborted) return
      this.#changed()
      if (this.status === 'refused') return
      await new Promise((resolve) => setTimeout(resolve, pause))
    }
  }

  #step(name, step, at) {
    const kept = this.steps.get(name) ?? []
    if (kept.at(-1)?.step !== step) this.steps.set(name, [...kept, { at, step }].slice(-mostSteps))
  }

  #take(view) {
    const before = this.view
    const at = secondsOf(view)
    for (const ns of view.namespaces) {
      ns.rate = null
      if (ns.segment) this.#step(ns.namespace, ns.segment.step, view.at)
      if (!view.counts) continue
      const was = before?.namespaces.find((one) => one.namespace === ns.namespace)
      const passed = at - secondsOf(before)
      // A restarted server counts from 0, and a clock may be set.
      if (!was || !(passed > 0.1) || ns.issued < was.issued) continue
      ns.rate = (ns.issued - was.issued) / passed
      let kept = this.rates.get(ns.namespace)
      if (!kept || at <= kept.at.at(-1)) this.rates.set(ns.namespace, (kept = { at: [], rate: [] }))
      kept.at.push(at)
      kept.rate.push(ns.rate)
      if (kept.at.length > longest) {
        kept.at.shift()
        kept.rate.shift()
      }
    }
    view.here = Date.now()
    this.view = view
    this.status = 'live'
    this.failure = null
    this.#changed()
  }
}
