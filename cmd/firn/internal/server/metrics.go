package server

import (
	"github.com/prometheus/client_golang/prometheus"
)

// metrics are the counts of the server as a process.
type metrics struct {
	connections *prometheus.GaugeVec
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
		connections: prometheus.NewGaugeVec(prometheus.GaugeOpts{
			Name: "firn_connections", Help: "Connections that are open, by listener.",
		}, []string{"listener"}),
		refused: counters("firn_connections_refused_total", "Connections above the limit, by listener.", "listener"),
		reloads: counters("firn_config_reloads_total", "Configurations read again, by result: ok or failed.", "result"),
		successful: gauge("firn_config_last_reload_successful",
			"1 if the configuration in force is what the file says, 0 if that could not be served."),
		succeeded:  gauge("firn_config_last_reload_success_timestamp_seconds", "When the configuration in force was read."),
		tlsReloads: counters("firn_tls_reloads_total", "Certificates read again, by result: ok or failed.", "result"),
		tlsSuccessful: gauge("firn_tls_last_reload_successful",
			"1 if the certificates in force are those of their files, 0 if those could not be used."),
		notAfter: gauge("firn_tls_certificate_not_after_timestamp_seconds", "When the server's certificate ends."),
	}
	for _, result := range []string{resultOK, resultFailed} {
		m.reloads.WithLabelValues(result)
		m.tlsReloads.WithLabelValues(result)
	}
	to.MustRegister(m.connections, m.refused, m.reloads, m.successful, m.succeeded)
	return m
}

func counters(name, help, label string) *prometheus.CounterVec {
	return prometheus.NewCounterVec(prometheus.CounterOpts{Name: name, Help: help}, []string{label})
}

func gauge(name, help string) prometheus.Gauge {
	return prometheus.NewGauge(prometheus.GaugeOpts{Name: name, Help: help})
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
