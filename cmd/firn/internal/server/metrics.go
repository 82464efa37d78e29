package server

import (
	"sync"

	"github.com/prometheus/client_golang/prometheus"
)

// metrics are the counts of the server as a process.
type metrics struct {
	connections *openConnections
	refused     *prometheus.CounterVec
	reloads     *prometheus.CounterVec
	successful  prometheus.Gauge
	succeeded   prometheus.Gauge
	notAfter    prometheus.Gauge

	tlsReloads    *prometheus.CounterVec
	tlsSuccessful prometheus.Gauge
}

func newMetrics(to *prometheus.Registry) *metrics {
	m := &metrics{
		connections: &openConnections{of: map[string]func() int{}},
		refused: prometheus.NewCounterVec(prometheus.CounterOpts{
			Name: "firn_connections_refused_total", Help: "Connections above the limit, by listener.",
		}, []string{"listener"}),
		reloads: prometheus.NewCounterVec(prometheus.CounterOpts{
			Name: "firn_config_reloads_total", Help: "Configurations read again, by result: ok or failed.",
		}, []string{"result"}),
		successful: prometheus.NewGauge(prometheus.GaugeOpts{
			Name: "firn_config_last_reload_successful", Help: "1 if the configuration in force is what the file says, 0 if that could not be served.",
		}),
		succeeded: prometheus.NewGauge(prometheus.GaugeOpts{
			Name: "firn_config_last_reload_success_timestamp_seconds", Help: "When the configuration in force was read.",
		}),
		tlsReloads: prometheus.NewCounterVec(prometheus.CounterOpts{
			Name: "firn_tls_reloads_total", Help: "Certificates read again, by result: ok or failed.",
		}, []string{"result"}),
		tlsSuccessful: prometheus.NewGauge(prometheus.GaugeOpts{
			Name: "firn_tls_last_reload_successful", Help: "1 if the certificates in force are those of their files, 0 if those could not be used.",
		}),
		notAfter: prometheus.NewGauge(prometheus.GaugeOpts{
			Name: "firn_tls_certificate_not_after_timestamp_seconds", Help: "When the server's certificate ends.",
		}),
	}
	for _, result := range []string{resultOK, resultFailed} {
		m.reloads.WithLabelValues(result)
		m.tlsReloads.WithLabelValues(result)
	}
	to.MustRegister(m.connections, m.refused, m.reloads, m.successful, m.succeeded)
	return m
}

// lostRecords counts the records of a log that whatever reads it did not take in time.
func lostRecords(of string, lost func() int64) prometheus.Collector {
	return prometheus.NewCounterFunc(prometheus.CounterOpts{
		Name: "firn_log_records_lost_total", Help: "Records of a log that were not written.", ConstLabels: prometheus.Labels{"log": of},
	}, func() float64 { return float64(lost()) })
}

const (
	resultOK     = "ok"
	resultFailed = "failed"
)

// openConnections shows how many connections listeners have.
type openConnections struct {
	mu sync.Mutex
	of map[string]func() int
}

var descConnections = prometheus.NewDesc("firn_connections", "Connections that are open, by listener.", []string{"listener"}, nil)

func (o *openConnections) add(listener string, open func() int) {
	o.mu.Lock()
	defer o.mu.Unlock()
	o.of[listener] = open
}

// Describe implements [prometheus.Collector].
func (*openConnections) Describe(to chan<- *prometheus.Desc) { to <- descConnections }

// Collect implements [prometheus.Collector].
func (o *openConnections) Collect(to chan<- prometheus.Metric) {
	o.mu.Lock()
	defer o.mu.Unlock()
	for listener, open := range o.of {
		to <- prometheus.MustNewConstMetric(descConnections, prometheus.GaugeValue, float64(open()), listener)
	}
}
