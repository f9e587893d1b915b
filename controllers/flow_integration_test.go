//go:build integration

// Copyright The conversion-operator Authors.
// SPDX-License-Identifier: Apache-2.0

package controllers

import (
	"fmt"
	"net/http"
	"os"
	"path/filepath"
	"strings"
	"testing"

	authenticationv1 "k8s.io/api/authentication/v1"
	corev1 "k8s.io/api/core/v1"
	flowcontrolv1 "k8s.io/api/flowcontrol/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/client-go/rest"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/conversion-operator/conversion-operator/internal/operator/plan/names"
	"github.com/conversion-operator/conversion-operator/internal/test/expect"
)

// TestFlowSchema: requests with the token of a migration go to the priority level of the operator,
// and other requests from its namespace do not. If that level is missing, no request is refused.
func TestFlowSchema(t *testing.T) {
	name := migrating(t, "flow.runs.example.com")
	waitForRun(t, name)
	schema := &flowcontrolv1.FlowSchema{}
	expect.NoError(t, cluster.Get(t.Context(), client.ObjectKey{Name: names.MigrationRights(name)}, schema))
	run, other := tokenOf(t, names.MigrationRights(name)), tokenOf(t, "default")
	list := fmt.Sprintf("/apis/flow.runs.example.com/v1/namespaces/%s/crontabs?limit=1", system)
	if got := flowOf(t, run, list); got.schema == string(schema.UID) || got.schema == "" || got.code != http.StatusOK {
		t.Errorf("without the level, a request goes to %+v", got)
	}

	level := &flowcontrolv1.PriorityLevelConfiguration{}
	text, err := os.ReadFile(filepath.Join("..", "config", "flowcontrol", "priority_level.yaml"))
	expect.NoError(t, err)
	unmarshal(t, string(text), level)
	expect.NoError(t, cluster.Create(t.Context(), level))
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
	config := rest.AnonymousClientConfig(direct)
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
	expect.NoError(t, client.IgnoreAlreadyExists(cluster.Create(t.Context(), object.DeepCopy())))
	request := &authenticationv1.TokenRequest{}
	expect.NoError(t, cluster.SubResource("token").Create(t.Context(), object, request))
	return request.Status.Token
}
