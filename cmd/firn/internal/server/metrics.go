package server

import (
	"net/http"

	"github.com/prometheus/client_golang/prometheus"
	"github.com/prometheus/client_golang/prometheus/collectors"
	"github.com/prometheus/client_golang/prometheus/promhttp"
)

// metrics is what the server counts, under /metrics.
type metrics struct {
	registry *prometheus.Registry
	issued   *prometheus.CounterVec
	requests *prometheus.CounterVec
	seconds  *prometheus.HistogramVec
}

func newMetrics() *metrics {
	m := &metrics{
		registry: prometheus.NewRegistry(),
		issued: prometheus.NewCounterVec(prometheus.CounterOpts{
			Name: "firn_ids_total", Help: "Ids issued.",
		}, []string{"namespace"}),
		requests: prometheus.NewCounterVec(prometheus.CounterOpts{
			Name: "firn_http_requests_total", Help: "HTTP requests by route and status.",
		}, []string{"route", "status"}),
		seconds: prometheus.NewHistogramVec(prometheus.HistogramOpts{
			Name: "firn_http_request_seconds", Help: "How long HTTP requests took, by route.",
			Buckets: []float64{.0001, .00025, .0005, .001, .0025, .005, .01, .025, .05, .1, .25, .5, 1, 2.5},
		}, []string{"route"}),
	}
	m.registry.MustRegister(m.issued, m.requests, m.seconds,
		collectors.NewGoCollector(), collectors.NewProcessCollector(collectors.ProcessCollectorOpts{}))
	return m
}

// watch registers what is read from the server's leases when asked for.
func (m *metrics) watch(s *Server) { m.registry.MustRegister(leaseCollector{s}) }

func (m *metrics) handler() http.Handler {
	return promhttp.HandlerFor(m.registry, promhttp.HandlerOpts{})
}

// leaseCollector shows the state of the leases.
type leaseCollector struct{ server *Server }

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
func (leaseCollector) Describe(to chan<- *prometheus.Desc) {
	for _, d := range []*prometheus.Desc{descWorker, descFence, descRenewals, descLosses, descSwitches, descErrors} {
		to <- d
	}
}

// Collect implements [prometheus.Collector].
func (c leaseCollector) Collect(to chan<- prometheus.Metric) {
	c.server.mu.RLock()
	defer c.server.mu.RUnlock()
	for _, p := range c.server.pools {
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
