// Copyright The conversion-operator Authors.
// SPDX-License-Identifier: Apache-2.0

package controllers

import (
	"context"
	"errors"
	"net/http"
	"net/http/httptest"
	"os"
	"regexp"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/go-logr/logr"
	"github.com/prometheus/client_golang/prometheus"
	"github.com/prometheus/client_golang/prometheus/promhttp"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/conversion-operator/conversion-operator/api/v1alpha1"
	"github.com/conversion-operator/conversion-operator/internal/test/expect"
	"github.com/conversion-operator/conversion-operator/internal/test/metricstable"
)

// inMemory lists policies and fleets, or returns an error if there are none.
type inMemory struct {
	client.Reader
	policies []v1alpha1.ConversionPolicy
	fleets   []v1alpha1.ConverterFleet
}

func (m *inMemory) List(_ context.Context, list client.ObjectList, _ ...client.ListOption) error {
	if m.policies == nil && m.fleets == nil {
		return errors.New("the cache is not there")
	}
	switch list := list.(type) {
	case *v1alpha1.ConversionPolicyList:
		list.Items = m.policies
	case *v1alpha1.ConverterFleetList:
		list.Items = m.fleets
	}
	return nil
}

func scrape(t *testing.T, reader *inMemory) string {
	t.Helper()
	registry := prometheus.NewPedanticRegistry()
	confinement := &Confinement{}
	confinement.last.Store(new(true))
	registry.MustRegister(PolicyMetrics{Policies: reader, Log: logr.Discard(), BuildVersion: "v0.0.0"}, FleetMetrics{Fleets: reader, Log: logr.Discard()}, confinement)
	recorder := httptest.NewRecorder()
	promhttp.HandlerFor(registry, promhttp.HandlerOpts{}).ServeHTTP(recorder, httptest.NewRequest(http.MethodGet, "/metrics", nil))
	expect.Equal(t, "status with "+recorder.Body.String(), http.StatusOK, recorder.Code)
	return recorder.Body.String()
}

// fullPolicy returns a policy with a value for every metric.
func fullPolicy() v1alpha1.ConversionPolicy {
	at := func(seconds int64) metav1.Time { return metav1.NewTime(time.Unix(seconds, 0)) }
	return v1alpha1.ConversionPolicy{
		ObjectMeta: metav1.ObjectMeta{Name: "crontabs.example.com"},
		Spec: v1alpha1.ConversionPolicySpec{
			Converter:  v1alpha1.Converter{Type: v1alpha1.ConverterImage, Image: &v1alpha1.ImageConverter{}},
			Retirement: []v1alpha1.Retirement{{Version: "v1beta1", Action: v1alpha1.RetirementRemove}},
		},
		Status: v1alpha1.ConversionPolicyStatus{
			Conditions:  []metav1.Condition{{Type: v1alpha1.ReadyCondition, Status: metav1.ConditionFalse, Reason: v1alpha1.ReasonObjectsFailed}},
			CRD:         &v1alpha1.CRDStatus{ServedVersions: []string{"v1beta1", "v1"}, StorageVersion: "v1", StoredVersions: []string{"v1beta1", "v1"}},
			Webhook:     &v1alpha1.WebhookStatus{Desired: 2, Ready: 1},
			Certificate: &v1alpha1.CertificateStatus{NotAfter: at(2000), CANotAfter: at(3000)},
			Drift:       &v1alpha1.DriftStatus{LastTime: at(1000)},
			Migration: &v1alpha1.MigrationStatus{
				State: v1alpha1.MigrationRunning, Step: v1alpha1.MigrationRewriting, Message: "patches wait", Total: 12,
				Rewritten: 4, Unchanged: 5, Failed: 3,
				StartTime: new(at(100)), CompletionTime: new(at(300)), EstimatedCompletion: new(at(200)),
				Failures: []v1alpha1.MigrationFailure{{Reason: "Invalid"}, {Reason: "Invalid"}, {Reason: "TooLarge"}},
			},
			PreservedData: &v1alpha1.PreservedDataStatus{
				Complete: true, Time: at(500),
				Versions: []v1alpha1.PreservedVersion{{Version: "v1beta1", Objects: 7}},
			},
			Versions:   []v1alpha1.VersionStatus{{Name: "v1beta1", SafeToUnserve: true}},
			Retirement: []v1alpha1.RetirementStatus{{Version: "v1beta1", LastRequested: new(at(3600))}},
		},
	}
}

// oversized is a policy with rules, of which some objects are too large.
func oversized() v1alpha1.ConversionPolicy {
	return v1alpha1.ConversionPolicy{ObjectMeta: metav1.ObjectMeta{Name: "gadgets.example.com"},
		Spec:   v1alpha1.ConversionPolicySpec{Converter: v1alpha1.Converter{Type: v1alpha1.ConverterDeclarative, Declarative: &v1alpha1.DeclarativeConverter{}}},
		Status: v1alpha1.ConversionPolicyStatus{OversizedObjects: []v1alpha1.OversizedObject{{Object: "a", Version: "v1"}, {Object: "a", Version: "v2"}, {Object: "b"}, {Object: "c"}}}}
}

func TestPolicyMetrics(t *testing.T) {
	bare := v1alpha1.ConversionPolicy{ObjectMeta: metav1.ObjectMeta{Name: "widgets.example.com"},
		Spec: v1alpha1.ConversionPolicySpec{Converter: v1alpha1.Converter{Type: v1alpha1.ConverterNone}}}
	scraped := scrape(t, &inMemory{policies: []v1alpha1.ConversionPolicy{fullPolicy(), bare, oversized()}})
	var got []string
	for line := range strings.Lines(scraped) {
		if name, found := strings.CutPrefix(strings.TrimSpace(line), metricsNamespace+"_policy_"); found {
			got = append(got, strings.Replace(name, `policy="crontabs.example.com"`, "", 1))
		}
	}
	slices.Sort(got)
	want := []string{
		`ca_expiry_timestamp_seconds{} 3000`,
		`certificate_expiry_timestamp_seconds{} 2000`,
		`converter_pods{,state="desired"} 2`,
		`converter_pods{,state="ready"} 1`,
		`drift_timestamp_seconds{} 1000`,
		`info{converter="Declarative",policy="gadgets.example.com",storage_version=""} 1`,
		`info{converter="Image",,storage_version="v1"} 1`,
		`info{converter="None",policy="widgets.example.com",storage_version=""} 1`,
		`migration_end_timestamp_seconds{} 300`,
		`migration_estimated_end_timestamp_seconds{} 200`,
		`migration_listed_failures{,reason="Invalid"} 2`,
		`migration_listed_failures{,reason="TooLarge"} 1`,
		`migration_objects_found{} 12`,
		`migration_objects{outcome="failed",} 3`,
		`migration_objects{outcome="rewritten",} 4`,
		`migration_objects{outcome="unchanged",} 5`,
		`migration_start_timestamp_seconds{} 100`,
		`migration_state{,state="Cancelled"} 0`,
		`migration_state{,state="Failed"} 0`,
		`migration_state{,state="Running"} 1`,
		`migration_state{,state="Succeeded"} 0`,
		`migration_state{,state="Superseded"} 0`,
		`migration_step_info{,step="Rewriting"} 1`,
		`migration_waiting{} 1`,
		`oversized_objects{policy="gadgets.example.com"} 3`,
		`preserved_count_complete{} 1`,
		`preserved_counted_timestamp_seconds{} 500`,
		`preserved_objects{,version="v1beta1"} 7`,
		`ready_reason_info{,reason="ObjectsFailed"} 1`,
		`retirement_info{action="Remove",,version="v1beta1"} 1`,
		`status_condition{condition="Ready",,status="False"} 1`,
		`status_condition{condition="Ready",,status="True"} 0`,
		`status_condition{condition="Ready",,status="Unknown"} 0`,
		`stored_versions{} 2`,
		`version_last_requested_timestamp_seconds{,version="v1beta1"} 3600`,
		`version_state{,state="safe_to_remove",version="v1beta1"} 0`,
		`version_state{,state="safe_to_unserve",version="v1beta1"} 1`,
		`version_state{,state="served",version="v1beta1"} 1`,
		`version_state{,state="storage",version="v1beta1"} 0`,
		`version_state{,state="stored",version="v1beta1"} 1`,
	}
	expect.Equal(t, "result", want, got)
}

// fullFleet returns a fleet with a value for every metric.
func fullFleet() v1alpha1.ConverterFleet {
	return v1alpha1.ConverterFleet{ObjectMeta: metav1.ObjectMeta{Name: "blue"}, Status: v1alpha1.ConverterFleetStatus{
		Conditions: []metav1.Condition{{Type: v1alpha1.NotRedundantCondition, Status: metav1.ConditionTrue}},
		Replicas:   3, ReadyReplicas: 2, Policies: 7,
		Certificate: &v1alpha1.CertificateStatus{NotAfter: metav1.Unix(2000, 0), CANotAfter: metav1.Unix(3000, 0)}}}
}

func TestFleetMetrics(t *testing.T) {
	empty := v1alpha1.ConverterFleet{ObjectMeta: metav1.ObjectMeta{Name: "green"}}
	var got []string
	for line := range strings.Lines(scrape(t, &inMemory{fleets: []v1alpha1.ConverterFleet{fullFleet(), empty}})) {
		if name, found := strings.CutPrefix(strings.TrimSpace(line), metricsNamespace+"_fleet_"); found {
			got = append(got, name)
		}
	}
	slices.Sort(got)
	want := []string{
		`ca_expiry_timestamp_seconds{fleet="blue"} 3000`,
		`certificate_expiry_timestamp_seconds{fleet="blue"} 2000`,
		`converter_pods{fleet="blue",state="all"} 3`,
		`converter_pods{fleet="blue",state="ready"} 2`,
		`converter_pods{fleet="green",state="all"} 0`,
		`converter_pods{fleet="green",state="ready"} 0`,
		`policies{fleet="blue"} 7`,
		`policies{fleet="green"} 0`,
		`status_condition{condition="NotRedundant",fleet="blue",status="False"} 0`,
		`status_condition{condition="NotRedundant",fleet="blue",status="True"} 1`,
		`status_condition{condition="NotRedundant",fleet="blue",status="Unknown"} 0`,
	}
	expect.Equal(t, "metrics", want, got)
}

// If policies and fleets cannot be read, a scrape still returns other metrics.
func TestPolicyMetricsWithoutPolicies(t *testing.T) {
	if got := scrape(t, &inMemory{}); strings.Contains(got, "_policy_") || strings.Contains(got, "_fleet_") || !strings.Contains(got, "_build_info{") {
		t.Errorf("got %s", got)
	}
}

// TestPolicyMetricsAreDocumented compares the documented metrics with the exported ones.
func TestPolicyMetricsAreDocumented(t *testing.T) {
	table := metricstable.Table{Page: "../api/docs/metrics.md", Name: "MANAGER METRICS", Prefix: metricsNamespace + "_"}
	table.Check(t, scrape(t, &inMemory{policies: []v1alpha1.ConversionPolicy{fullPolicy(), oversized()}, fleets: []v1alpha1.ConverterFleet{fullFleet()}}))
}

// A state that is not exported would be missing from every query.
func TestAllMigrationStatesAreExported(t *testing.T) {
	source, err := os.ReadFile("../api/v1alpha1/migration_types.go")
	expect.NoError(t, err)
	var want []string
	for _, constant := range regexp.MustCompile(`MigrationState = "(\w+)"`).FindAllStringSubmatch(string(source), -1) {
		want = append(want, constant[1])
	}
	var got []string
	for _, state := range migrationStates {
		got = append(got, string(state))
	}
	expect.Equal(t, "states that are exported", want, got)
}

// TestAlertsUseExportedMetrics: some policy exports each metric.
func TestAlertsUseExportedMetrics(t *testing.T) {
	policies := []v1alpha1.ConversionPolicy{fullPolicy()}
	conditions := &policies[0].Status.Conditions
	for _, condition := range slices.Concat([]string{v1alpha1.StalledCondition}, v1alpha1.Abnormal, v1alpha1.Gates) {
		*conditions = append(*conditions, metav1.Condition{Type: condition})
	}
	for _, step := range []v1alpha1.MigrationStep{v1alpha1.MigrationSuspended, v1alpha1.MigrationAuditing, v1alpha1.MigrationVerifying} {
		other := fullPolicy()
		other.Name = string(step)
		other.Status.Migration.Step = step
		other.Spec.Retirement[0].Action = v1alpha1.RetirementUnserve
		policies = append(policies, other)
	}
	scraped := scrape(t, &inMemory{policies: policies})
	expect.Contains(t, "what policies export", scraped, metricstable.Asked(t, "..", metricsNamespace+"_policy")...)
}
