// Copyright The conversion-operator Authors.
// SPDX-License-Identifier: Apache-2.0

package plan_test

import (
	"os"
	"path/filepath"
	"regexp"
	"strings"
	"sync"
	"testing"

	lua "github.com/yuin/gopher-lua"
	apimeta "k8s.io/apimachinery/pkg/api/meta"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"sigs.k8s.io/yaml"

	"github.com/conversion-operator/conversion-operator/api/v1alpha1"
)

// argoCDHealth is the documentation's script by which Argo CD tells the health
// of a policy.
var argoCDHealth = sync.OnceValues(func() (string, error) {
	text, err := os.ReadFile(filepath.Join("..", "..", "api", "docs", "gitops.md"))
	if err != nil {
		return "", err
	}
	block := regexp.MustCompile("(?s)```yaml file=argocd-cm.yaml\n(.*?)```").FindSubmatch(text)
	if block == nil {
		return "", os.ErrNotExist
	}
	config := struct{ Data map[string]string }{}
	err = yaml.Unmarshal(block[1], &config)
	return config.Data["resource.customizations.health."+v1alpha1.GroupVersion.Group+"_ConversionPolicy"], err
})

// checkArgoCD has Argo CD read a status, with the kind of interpreter that it uses.
func checkArgoCD(t *testing.T, policy *v1alpha1.ConversionPolicy, is v1alpha1.ConversionPolicyStatus, object *unstructured.Unstructured) {
	t.Helper()
	script, err := argoCDHealth()
	if err != nil || script == "" {
		t.Fatalf("the script is not in the documentation: %v", err)
	}
	health, message := runHealth(t, script, object.Object)
	ready := apimeta.FindStatusCondition(is.Conditions, v1alpha1.ReadyCondition)
	want, words := "Progressing", ready.Message
	blocked := apimeta.FindStatusCondition(is.Conditions, v1alpha1.DeletionBlockedCondition)
	switch {
	case !policy.DeletionTimestamp.IsZero() && blocked != nil:
		words = blocked.Message
	case !policy.DeletionTimestamp.IsZero():
	case ready.Reason == v1alpha1.ReasonSuspended:
		want = "Suspended"
	case apimeta.IsStatusConditionTrue(is.Conditions, v1alpha1.StalledCondition):
		want = "Degraded"
	case apimeta.IsStatusConditionTrue(is.Conditions, v1alpha1.ReadyCondition):
		want = "Healthy"
	}
	if health != want || message != words {
		t.Errorf("Argo CD reads %s: %s; want %s: %s", health, message, want, words)
	}
}

// TestArgoCDHealthOfNew: the operator has seen nothing of it yet, or not the last change.
func TestArgoCDHealthOfNew(t *testing.T) {
	script, err := argoCDHealth()
	if err != nil {
		t.Fatal(err)
	}
	for title, text := range map[string]string{
		"no status":     "metadata: {generation: 1}",
		"no conditions": "{metadata: {generation: 1}, status: {}}",
		"no Ready":      "{metadata: {generation: 1}, status: {conditions: [{type: RulesValid, status: 'True', observedGeneration: 1}]}}",
		"changed since": "{metadata: {generation: 2}, status: {conditions: [{type: Ready, status: 'True', message: well, observedGeneration: 1}]}}",
	} {
		object := map[string]any{}
		if err := yaml.Unmarshal([]byte(text), &object); err != nil {
			t.Fatal(err)
		}
		if health, message := runHealth(t, script, object); health != "Progressing" || !strings.Contains(message, "not looked at it") {
			t.Errorf("%s: %s: %s", title, health, message)
		}
	}
}

func runHealth(t *testing.T, script string, object map[string]any) (health, message string) {
	t.Helper()
	state := lua.NewState(lua.Options{SkipOpenLibs: true, RegistrySize: 256}) // a small one, as there are many
	defer state.Close()
	lua.OpenBase(state)
	state.SetTop(0)
	state.SetGlobal("obj", luaValue(state, object))
	if err := state.DoString(script); err != nil {
		t.Fatal(err)
	}
	answer, ok := state.Get(-1).(*lua.LTable)
	if !ok {
		t.Fatalf("the script returns %s", state.Get(-1).Type())
	}
	return lua.LVAsString(answer.RawGetString("status")), lua.LVAsString(answer.RawGetString("message"))
}

// luaValue is a value of an object as Argo CD hands it to scripts.
func luaValue(state *lua.LState, value any) lua.LValue {
	switch value := value.(type) {
	case map[string]any:
		table := state.NewTable()
		for key, element := range value {
			table.RawSetString(key, luaValue(state, element))
		}
		return table
	case []any:
		table := state.NewTable()
		for _, element := range value {
			table.Append(luaValue(state, element))
		}
		return table
	case string:
		return lua.LString(value)
	case bool:
		return lua.LBool(value)
	case int64:
		return lua.LNumber(value)
	case float64:
		return lua.LNumber(value)
	}
	return lua.LNil
}
