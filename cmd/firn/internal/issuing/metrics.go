package issuing

import (
	"maps"
	"sync"

	"github.com/prometheus/client_golang/prometheus"
)

// metrics is what the service counts.
type metrics struct {
	issued   *prometheus.CounterVec
	requests *prometheus.CounterVec
	seconds  *prometheus.HistogramVec
	others   others
}

// others are the requests that no namespace has answered, by namespace and code; "" has those that did not come to one.
// The registry has them too, but it cannot be asked for those of one namespace without a walk through all.
type others struct {
	mu sync.Mutex
	by map[string]Requests
}

// count adds requests that no namespace has answered.
func (m *metrics) count(namespace string, p Protocol, code string, requests int) {
	m.requests.WithLabelValues(namespace, p.String(), code).Add(float64(requests))
	o := &m.others
	o.mu.Lock()
	defer o.mu.Unlock()
	if o.by[namespace] == nil {
		o.by[namespace] = Requests{}
	}
	o.by[namespace][code] += int64(requests)
}

// of returns a copy of those of a namespace, nil if there are none.
func (o *others) of(namespace string) Requests {
	o.mu.Lock()
	defer o.mu.Unlock()
	return maps.Clone(o.by[namespace])
}

func newMetrics(to *prometheus.Registry) *metrics {
	m := &metrics{
		issued: prometheus.NewCounterVec(prometheus.CounterOpts{
			Name: "firn_ids_total", Help: "Ids issued.",
		}, []string{"namespace"}),
		requests: prometheus.NewCounterVec(prometheus.CounterOpts{
			Name: "firn_requests_total",
			Help: "Requests for ids by namespace, protocol and code: ok, or that of the error. Without a namespace: those that did not come to one.",
		}, []string{"namespace", "protocol", "code"}),
		seconds: prometheus.NewHistogramVec(prometheus.HistogramOpts{
			Name: "firn_request_seconds", Help: "How long requests took by protocol; resp: those of a pipeline together.",
			Buckets: []float64{.00001, .000025, .00005, .0001, .00025, .0005, .001, .0025, .005, .01, .025, .05, .1, .25, .5, 1, 2.5},
		}, []string{"protocol"}),
	}
	m.others.by = map[string]Requests{}
	to.MustRegister(m.issued, m.requests, m.seconds)
	return m
}

// collector collects the state of pools and namespaces.
type collector struct{ service *Service }

// described are all descriptions.
var described []*prometheus.Desc

func describe(name, help string, labels ...string) *prometheus.Desc {
	d := prometheus.NewDesc(name, help, labels, nil)
	described = append(described, d)
	return d
}

var (
	descReady    = describe("firn_ready", "1 once all pools have been joined, while any namespace can issue, else 0: what /readyz answers.")
	descAble     = describe("firn_namespace_ready", "1 while the namespace can issue, as far as is known, else 0.", "namespace")
	descWorker   = describe("firn_lease_worker", "The worker in use.", "pool")
	descFence    = describe("firn_lease_fence_seconds", "Seconds until the fence: how long the store may stay away.", "pool")
	descRenewals = describe("firn_lease_renewals_total", "Fences moved forward.", "pool")
	descLosses   = describe("firn_lease_losses_total", "Workers taken by others.", "pool")
	descOverlaps = describe("firn_lease_overlaps_total", "Grants whose ticks another process was, or may have been, granted too: ids may repeat.", "pool")
	descSwitches = describe("firn_lease_switches_total", "Workers left for another because the clock went back.", "pool")
	descErrors   = describe("firn_lease_errors_total", "Exchanges with the store that failed.", "pool")

	descLeft     = describe("firn_segment_left", "Ids in memory.", "namespace")
	descLasts    = describe("firn_segment_lasts_seconds", "How long they last at the present demand: how long the store may stay away.", "namespace")
	descFill     = describe("firn_segment_fill", "Ids in memory, as a part of one fetch; above 1 with ranges fetched ahead.", "namespace")
	descStep     = describe("firn_segment_step", "Ids that the next fetch asks for.", "namespace")
	descFetches  = describe("firn_segment_fetches_total", "Fetches of ranges that have ended.", "namespace")
	descFailures = describe("firn_segment_failures_total", "Fetches that brought no range.", "namespace")
	descWaits    = describe("firn_segment_waits_total", "How often requests found no id in memory. One that wants more ids than a range has may wait for several.", "namespace")

	descAdditions = describe("firn_sequence_additions_total", "Additions in the store.", "namespace")
	descCalls     = describe("firn_sequence_issued_total", "Ids made of them.", "namespace")

	descRemains = describe("firn_namespace_left",
		"Ids that the counter has left, as this server last saw it: in all, or in the present period. Absent before the first id, and while there are more than 2^53.", "namespace", "period")
	descPart = describe("firn_namespace_left_ratio",
		"firn_namespace_left as a part of all ids of the counter, or of the period.", "namespace", "period")
	descEnd = describe("firn_lease_layout_end_timestamp_seconds", "When the layout of the pool has no time left: no id is made from then on.", "pool")

	descSetBacks = describe("firn_store_setbacks_total",
		"How often the store was found to have less than it had confirmed, by namespace for a counter, by pool for a worker: ids may repeat.", "namespace", "pool")
)

// Describe implements [prometheus.Collector].
func (collector) Describe(to chan<- *prometheus.Desc) {
	for _, d := range described {
		to <- d
	}
}

// Collect implements [prometheus.Collector].
func (c collector) Collect(to chan<- prometheus.Metric) {
	gauge := func(d *prometheus.Desc, v float64, label ...string) {
		to <- prometheus.MustNewConstMetric(d, prometheus.GaugeValue, v, label...)
	}
	counter := func(d *prometheus.Desc, v int64, label ...string) {
		to <- prometheus.MustNewConstMetric(d, prometheus.CounterValue, float64(v), label...)
	}
	ready := 1.0
	if c.service.Ready() != nil {
		ready = 0
	}
	gauge(descReady, ready)
	c.service.mu.Lock()
	now, setBacks := c.service.now.Load(), maps.Clone(c.service.setBacks)
	c.service.mu.Unlock()
	for _, p := range now.pools {
		gauge(descEnd, float64(p.layout.End().Unix()), p.name)
		held, err := p.held()
		if err != nil {
			continue // no worker yet
		}
		s := held.State()
		gauge(descWorker, float64(s.Worker), p.name)
		gauge(descFence, s.Left.Seconds(), p.name)
		counter(descRenewals, s.Renewals, p.name)
		counter(descLosses, s.Losses, p.name)
		counter(descOverlaps, s.Overlaps, p.name)
		counter(descSwitches, s.Switches, p.name)
		counter(descErrors, s.Errors, p.name)
		setBacks[p.name] += s.SetBacks
	}
	for pool, n := range setBacks {
		counter(descSetBacks, n, "", pool)
	}
	counters := c.service.memory.SetBacks() // also of CosId's names, and of those that were removed
	for name, ns := range now.namespaces {
		if ns.settings.Of().Counted() {
			counters[name] += 0
		}
	}
	for name, n := range counters {
		counter(descSetBacks, n, name, "")
	}
	cannot := now.unable(maps.Keys(now.namespaces))
	for name, ns := range now.namespaces {
		able := 1.0
		if cannot[name] != nil {
			able = 0
		}
		gauge(descAble, able, name)
		if r, ok := ns.left(); ok {
			gauge(descRemains, float64(r.left), name, r.period)
			gauge(descPart, float64(r.left)/float64(r.of), name, r.period)
		}
		switch b := ns.base.(type) {
		case *segments:
			s := b.name.State()
			gauge(descLeft, float64(s.Left), name)
			gauge(descLasts, s.Lasts.Seconds(), name)
			gauge(descFill, float64(s.Left)/float64(s.Step), name)
			gauge(descStep, float64(s.Step), name)
			counter(descFetches, s.Fetches, name)
			counter(descFailures, s.Failures, name)
			counter(descWaits, s.Waits, name)
		case *sequences:
			b.show(counter, name)
		case *businessNumbers:
			b.counter.show(counter, name)
		}
	}
}

func (s *sequences) show(counter func(d *prometheus.Desc, v int64, label ...string), name string) {
	state := s.one.State()
	counter(descAdditions, state.Additions, name)
	counter(descCalls, state.Issued, name)
}
