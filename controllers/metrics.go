// Copyright The conversion-operator Authors.
// SPDX-License-Identifier: Apache-2.0

package controllers

import (
	"context"
	"runtime"
	"time"

	"github.com/go-logr/logr"
	"github.com/prometheus/client_golang/prometheus"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/conversion-operator/conversion-operator/api/v1alpha1"
)

// metricsNamespace begins the names of all metrics of the manager that are our own.
const metricsNamespace = "conversion_operator"

// scrapeTimeout is more than it takes to read what is in memory.
const scrapeTimeout = 5 * time.Second

// PolicyMetrics tell Prometheus what the statuses of policies say. They are made
// when they are asked for, so that nothing is left of a policy that is gone. The
// labels of policies are their names: there are as many as policies.
type PolicyMetrics struct {
	// Policies are read from memory.
	Policies client.Reader
	Log      logr.Logger
	// BuildVersion is the version of the manager.
	BuildVersion string
}

func policyMetric(name, help string, labels ...string) *prometheus.Desc {
	return prometheus.NewDesc(prometheus.BuildFQName(metricsNamespace, "policy", name), help, append([]string{"policy"}, labels...), nil)
}

var (
	conditionMetric = policyMetric("status_condition",
		"Conditions of a policy: 1 for the status that one has, 0 for the two others.", "condition", "status")
	reasonMetric = policyMetric("ready_reason_info",
		"The reason of the condition Ready. Always 1.", "reason")
	infoMetric = policyMetric("info",
		"What converts, and in which version objects are stored. Always 1.", "converter", "storage_version")
	podsMetric = policyMetric("converter_pods",
		"Pods of a converter, or endpoints of one that users run, that are wanted, and that are ready and proven.", "state")
	certificateMetric = policyMetric("certificate_expiry_timestamp_seconds",
		"When the serving certificate of the converter expires, in seconds of Unix time.")
	authorityMetric = policyMetric("ca_expiry_timestamp_seconds",
		"When the first of the trusted certificate authorities expires, in seconds of Unix time.")
	storedMetric = policyMetric("stored_versions",
		"Versions in which objects may be stored, as status.storedVersions of the CustomResourceDefinition says.")
	driftMetric = policyMetric("drift_timestamp_seconds",
		"When another client last changed the conversion of the CustomResourceDefinition, in seconds of Unix time.")
)

var buildMetric = prometheus.NewDesc(prometheus.BuildFQName(metricsNamespace, "", "build_info"),
	"The manager that is running. Always 1.", []string{"version", "goversion"}, nil)

// Describe implements prometheus.Collector.
func (PolicyMetrics) Describe(descriptions chan<- *prometheus.Desc) {
	for _, some := range [][]*prometheus.Desc{
		{buildMetric, conditionMetric, reasonMetric, infoMetric, podsMetric, certificateMetric, authorityMetric, storedMetric, driftMetric},
		migrationMetrics, versionMetrics,
	} {
		for _, description := range some {
			descriptions <- description
		}
	}
}

// Collect implements prometheus.Collector.
func (m PolicyMetrics) Collect(metrics chan<- prometheus.Metric) {
	metrics <- prometheus.MustNewConstMetric(buildMetric, prometheus.GaugeValue, 1, m.BuildVersion, runtime.Version())
	ctx, cancel := context.WithTimeout(context.Background(), scrapeTimeout)
	defer cancel()
	policies := &v1alpha1.ConversionPolicyList{}
	if err := m.Policies.List(ctx, policies, client.UnsafeDisableDeepCopy); err != nil {
		m.Log.Error(err, "Policies are missing from the metrics")
		return
	}
	for i := range policies.Items {
		tellPolicy(&policies.Items[i], func(description *prometheus.Desc, value float64, labels ...string) {
			metrics <- prometheus.MustNewConstMetric(description, prometheus.GaugeValue, value, append([]string{policies.Items[i].Name}, labels...)...)
		})
	}
}

// tell gives one value of a policy.
type tell func(_ *prometheus.Desc, value float64, labels ...string)

// tellPolicy gives the values of one policy, those that are known.
func tellPolicy(policy *v1alpha1.ConversionPolicy, tell tell) {
	status := &policy.Status
	tellConditions(status.Conditions, tell)
	storage := ""
	if crd := status.CRD; crd != nil {
		storage = crd.StorageVersion
		tell(storedMetric, float64(len(crd.StoredVersions)))
	}
	tell(infoMetric, 1, policy.Spec.Converter.Kind(), storage)
	if pods := status.Webhook; pods != nil {
		tell(podsMetric, float64(pods.Desired), "desired")
		tell(podsMetric, float64(pods.Ready), "ready")
	}
	if certificate := status.Certificate; certificate != nil {
		tell(certificateMetric, float64(certificate.NotAfter.Unix()))
		tell(authorityMetric, float64(certificate.CANotAfter.Unix()))
	}
	if drift := status.Drift; drift != nil {
		tell(driftMetric, float64(drift.LastTime.Unix()))
	}
	if last := status.Migration; last != nil {
		tellMigration(last, tell)
	}
	if counted := status.PreservedData; counted != nil {
		tellPreserved(counted, tell)
	}
	tellOversized(policy, tell)
	tellVersions(policy, tell)
}

func tellConditions(conditions []metav1.Condition, tell tell) {
	for _, condition := range conditions {
		for _, value := range []metav1.ConditionStatus{metav1.ConditionTrue, metav1.ConditionFalse, metav1.ConditionUnknown} {
			tell(conditionMetric, number(condition.Status == value), condition.Type, string(value))
		}
		if condition.Type == v1alpha1.ReadyCondition {
			tell(reasonMetric, 1, condition.Reason)
		}
	}
}

func number(so bool) float64 {
	if so {
		return 1
	}
	return 0
}
