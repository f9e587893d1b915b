//go:build integration

// Copyright The conversion-operator Authors.
// SPDX-License-Identifier: Apache-2.0

package manager

import (
	"fmt"
	"net/http"
	"strings"
	"testing"

	authenticationv1 "k8s.io/api/authentication/v1"
	corev1 "k8s.io/api/core/v1"
	flowcontrolv1 "k8s.io/api/flowcontrol/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/client-go/rest"

	"github.com/conversion-operator/conversion-operator/api/v1alpha1"
	"github.com/conversion-operator/conversion-operator/internal/operator/plan/migration"
	"github.com/conversion-operator/conversion-operator/internal/operator/plan/names"
	"github.com/conversion-operator/conversion-operator/internal/test/expect"
)

// TestFlowSchema: requests with the token of a migration go to the priority level of the operator,
// and other requests from its namespace do not. If that level is missing, no request is refused.
func TestFlowSchema(t *testing.T) {
	t.Parallel()
	const group, name = "flow.runs.example.com", "crontabs.flow.runs.example.com"
	migrateSlowly(t, group, func(spec *v1alpha1.ConversionPolicySpec) { spec.Workload = nil })
	waitFor(t, name, v1alpha1.StorageMigratedCondition, metav1.ConditionFalse, v1alpha1.ReasonMigrating, nil)
	waitJob(t, name, false)
	schema := get(t, names.MigrationRights(name), &flowcontrolv1.FlowSchema{})
	run, other := tokenOf(t, names.MigrationRights(name)), tokenOf(t, "default")
	list := "/apis/" + group + "/v1/namespaces/default/crontabs?limit=1"
	if got := flowOf(t, run, list); got.schema == string(schema.UID) || got.schema == "" || got.code != http.StatusOK {
		t.Errorf("without the level, a request goes to %+v", got)
	}

	install(t, "flowcontrol/priority_level.yaml")
	level := get(t, migration.DefaultPriorityLevel, &flowcontrolv1.PriorityLevelConfiguration{})
	want := flow{schema: string(schema.UID), level: string(level.UID), code: http.StatusOK}
	expect.Eventually(t, "a migration's request goes to the level that is installed", func() (bool, string) {
		got := flowOf(t, run, list)
		return got == want, fmt.Sprintf("%+v, want %+v", got, want)
	})
	if got := flowOf(t, other, list); got.schema == want.schema || got.level == want.level || got.schema == "" {
		t.Errorf("another ServiceAccount's request goes to %+v", got)
	}
}

// flow is the classification of a request, and its status.
type flow struct {
	schema, level string
	code          int
}

func flowOf(t *testing.T, token, path string) flow {
	t.Helper()
	config := rest.AnonymousClientConfig(server.Kubeconfig)
	config.BearerToken = token
	transport, err := rest.HTTPClientFor(config)
	expect.NoError(t, err)
	request, err := http.NewRequestWithContext(t.Context(), http.MethodGet, strings.TrimSuffix(config.Host, "/")+path, http.NoBody)
	expect.NoError(t, err)
	response, err := transport.Do(request)
	expect.NoError(t, err)
	defer response.Body.Close()
	return flow{response.Header.Get(flowcontrolv1.ResponseHeaderMatchedFlowSchemaUID),
		response.Header.Get(flowcontrolv1.ResponseHeaderMatchedPriorityLevelConfigurationUID), response.StatusCode}
}

// tokenOf requests a token as a kubelet does for a pod.
func tokenOf(t *testing.T, account string) string {
	t.Helper()
	object := &corev1.ServiceAccount{ObjectMeta: metav1.ObjectMeta{Namespace: system, Name: account}}
	request := &authenticationv1.TokenRequest{}
	expect.NoError(t, cluster.SubResource("token").Create(t.Context(), object, request))
	return request.Status.Token
}
