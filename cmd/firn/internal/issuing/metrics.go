package issuing

import "github.com/prometheus/client_golang/prometheus"

// metrics is what the service counts.
type metrics struct {
	issued   *prometheus.CounterVec
	requests *prometheus.CounterVec
	seconds  *prometheus.HistogramVec
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
	to.MustRegister(m.issued, m.requests, m.seconds)
	return m
}

// collector shows the state of leases.
type collector struct{ service *Service }

func describeLease(name, help string) *prometheus.Desc {
	return prometheus.NewDesc(name, help, []string{"pool"}, nil)
}

var (
	descWorker   = describeLease("firn_lease_worker", "The worker in use.")
	descFence    = describeLease("firn_lease_fence_seconds", "Seconds until the fence: how long the store may stay away.")
	descRenewals = describeLease("firn_lease_renewals_total", "Fences moved forward.")
	descLosses   = describeLease("firn_lease_losses_total", "Workers taken by others.")
	descSwitches = describeLease("firn_lease_switches_total", "Workers left for another because the clock went back.")
	descErrors   = describeLease("firn_lease_errors_total", "Exchanges with the store that failed.")
)

// Describe implements [prometheus.Collector].
func (collector) Describe(to chan<- *prometheus.Desc) {
	for _, d := range []*prometheus.Desc{descWorker, descFence, descRenewals, descLosses, descSwitches, descErrors} {
		to <- d
	}
}

// Collect implements [prometheus.Collector].
func (c collector) Collect(to chan<- prometheus.Metric) {
	for _, p := range c.service.now.Load().pools {
		s := p.lease.State()
		gauge := func(d *prometheus.Desc, v float64) {
			to <- prometheus.MustNewConstMetric(d, prometheus.GaugeValue, v, p.name)
		}
		counter := func(d *prometheus.Desc, v int64) {
			to <- prometheus.MustNewConstMetric(d, prometheus.CounterValue, float64(v), p.name)
		}
		gauge(descWorker, float64(s.Worker))
		gauge(descFence, s.Left.Seconds())
		counter(descRenewals, s.Renewals)
		counter(descLosses, s.Losses)
		counter(descSwitches, s.Switches)
		counter(descErrors, s.Errors)
	}
}
