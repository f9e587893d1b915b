// Copyright The conversion-operator Authors.
// SPDX-License-Identifier: Apache-2.0

package standards

import (
	"fmt"
	"os"
	"slices"
	"testing"

	lua "github.com/yuin/gopher-lua"
	corev1 "k8s.io/api/core/v1"
	"k8s.io/pod-security-admission/api"
	"k8s.io/pod-security-admission/policy"
	"sigs.k8s.io/yaml"

	"github.com/conversion-operator/conversion-operator/api/v1alpha1"
	"github.com/conversion-operator/conversion-operator/internal/test/docs"
	"github.com/conversion-operator/conversion-operator/internal/test/expect"
)

// TestArgoCDHealth runs the health script on every combination of its inputs. Other tests check the
// conditions themselves.
func TestArgoCDHealth(t *testing.T) {
	script := healthScript(t)
	for _, ready := range conditions(v1alpha1.ReadyCondition, "Succeeded", "Paused") {
		for _, stalled := range conditions(v1alpha1.StalledCondition, "Succeeded") {
			for _, blocked := range conditions(v1alpha1.DeletionBlockedCondition, "InUse") {
				for _, deleting := range []bool{false, true} {
					object := policyWith(deleting, ready, stalled, blocked)
					wantHealth, wantMessage := wanted(ready, stalled, blocked, deleting)
					health, message := run(t, script, object)
					expect.Equal(t, fmt.Sprintf("health and message of %v", object), []string{wantHealth, wantMessage}, []string{health, message})
				}
			}
		}
	}
}

// TestArgoCDHealthOfNew: the operator has not processed the policy yet, or not its last change.
func TestArgoCDHealthOfNew(t *testing.T) {
	script := healthScript(t)
	for title, text := range map[string]string{
		"no status":     "metadata: {generation: 1}",
		"no conditions": "{metadata: {generation: 1}, status: {}}",
		"no Ready":      "{metadata: {generation: 1}, status: {conditions: [{type: RulesValid, status: 'True', observedGeneration: 1}]}}",
		"changed since": "{metadata: {generation: 2}, status: {conditions: [{type: Ready, status: 'True', message: well, observedGeneration: 1}]}}",
	} {
		object := map[string]any{}
		expect.NoError(t, yaml.Unmarshal([]byte(text), &object))
		health, message := run(t, script, object)
		expect.Equal(t, title+": health and message", []string{"Progressing", notProcessed}, []string{health, message})
	}
}

const notProcessed = "the operator has not processed this policy yet"

// condition is a condition of a policy; it is missing if kind is empty.
type condition struct{ kind, status, reason string }

func (c condition) message() string { return c.kind + " is " + c.status + ": " + c.reason }

// conditions returns the possible forms of a condition.
func conditions(kind string, reasons ...string) []condition {
	all := []condition{{}}
	for _, status := range []string{"True", "False", "Unknown"} {
		for _, reason := range reasons {
			all = append(all, condition{kind, status, reason})
		}
	}
	return all
}

func policyWith(deleting bool, all ...condition) map[string]any {
	metadata := map[string]any{"generation": int64(3)}
	if deleting {
		metadata["deletionTimestamp"] = "2026-11-24T00:00:00Z"
	}
	list := []any{}
	for _, c := range all {
		if c.kind != "" {
			list = append(list, map[string]any{"type": c.kind, "status": c.status, "reason": c.reason, "message": c.message(), "observedGeneration": int64(3)})
		}
	}
	return map[string]any{"metadata": metadata, "status": map[string]any{"conditions": list}}
}

func wanted(ready, stalled, blocked condition, deleting bool) (health, message string) {
	switch {
	case ready.kind == "":
		return "Progressing", notProcessed
	case deleting && blocked.status == "True":
		return "Progressing", blocked.message()
	case deleting:
		return "Progressing", ready.message()
	case ready.reason == v1alpha1.ReasonPaused:
		return "Suspended", ready.message()
	case stalled.status == "True":
		return "Degraded", ready.message()
	case ready.status == "True":
		return "Healthy", ready.message()
	}
	return "Progressing", ready.message()
}

// healthScript returns the documented script.
func healthScript(t *testing.T) string {
	t.Helper()
	page, err := docs.Read("../../..", docs.Folder+"/gitops.md")
	expect.NoError(t, err)
	at := slices.IndexFunc(page.Blocks, func(block docs.Block) bool { return block.File() == "argocd-cm.yaml" })
	if at < 0 {
		t.Fatal("gitops.md has no argocd-cm.yaml")
	}
	config := struct{ Data map[string]string }{}
	expect.NoError(t, yaml.Unmarshal([]byte(page.Blocks[at].Text), &config))
	script := config.Data["resource.customizations.health."+v1alpha1.GroupVersion.Group+"_ConversionPolicy"]
	if script == "" {
		t.Fatal("argocd-cm.yaml of gitops.md has no script for ConversionPolicies")
	}
	return script
}

// run runs the script with Argo CD's interpreter, and returns its result.
func run(t *testing.T, script string, object map[string]any) (health, message string) {
	t.Helper()
	state := lua.NewState(lua.Options{SkipOpenLibs: true})
	defer state.Close()
	lua.OpenBase(state)
	state.SetTop(0)
	state.SetGlobal("obj", luaValue(state, object))
	expect.NoError(t, state.DoString(script))
	answer, ok := state.Get(-1).(*lua.LTable)
	if !ok {
		t.Fatalf("the script returns %s", state.Get(-1).Type())
	}
	return lua.LVAsString(answer.RawGetString("status")), lua.LVAsString(answer.RawGetString("message"))
}

// luaValue converts a value like Argo CD does for scripts.
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
	case int64:
		return lua.LNumber(value)
	case float64:
		return lua.LNumber(value)
	}
	return lua.LNil
}

// TestPodsAreRestricted: every pod that the planner's tests record satisfies the restricted Pod
// Security Standard, by Kubernetes' own check.
func TestPodsAreRestricted(t *testing.T) {
	text, err := os.ReadFile("../../operator/plan/testdata/pods.yaml")
	expect.NoError(t, err)
	pods := map[string]corev1.PodTemplateSpec{}
	expect.NoError(t, yaml.UnmarshalStrict(text, &pods))
	evaluator, err := policy.NewEvaluator(policy.DefaultChecks(), nil)
	expect.NoError(t, err)
	level := api.LevelVersion{Level: api.LevelRestricted, Version: api.LatestVersion()}
	for _, name := range []string{"manager", "converter", "image", "migration"} {
		pod, ok := pods[name]
		if !ok || len(pod.Spec.Containers) == 0 {
			t.Errorf("there is no pod %s", name)
		}
		for _, result := range evaluator.EvaluatePod(level, &pod.ObjectMeta, &pod.Spec) {
			if !result.Allowed {
				t.Errorf("%s: %s: %s", name, result.ForbiddenReason, result.ForbiddenDetail)
			}
		}
	}
}
