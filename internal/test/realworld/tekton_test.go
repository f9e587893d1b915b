// Copyright The conversion-operator Authors.
// SPDX-License-Identifier: Apache-2.0

package realworld

import (
	"maps"
	"testing"

	v1 "github.com/tektoncd/pipeline/pkg/apis/pipeline/v1"
	"github.com/tektoncd/pipeline/pkg/apis/pipeline/v1alpha1"
	"github.com/tektoncd/pipeline/pkg/apis/pipeline/v1beta1"
	resolutionv1alpha1 "github.com/tektoncd/pipeline/pkg/apis/resolution/v1alpha1"
	resolutionv1beta1 "github.com/tektoncd/pipeline/pkg/apis/resolution/v1beta1"
	"knative.dev/eventing/pkg/apis/eventing/v1beta2"
	"knative.dev/eventing/pkg/apis/eventing/v1beta3"
)

// values are examples for parameters, defaults and results.
var values = []any{"text", []any{"a", "b"}, map[string]any{"key": "value"}}

// TestTask: Tekton's v1.
func TestTask(t *testing.T) {
	const restartPolicy = "theirs forgets the field, in both directions, and it is lost; ours copies it"
	p := tekton[v1beta1.Task, v1.Task](t, "tekton-tasks", "task")
	p.differences = []difference{
		{"v1", ".spec.sidecars[*].restartPolicy", onlyOurs, restartPolicy},
		{"v1beta1", ".spec.sidecars[*].restartPolicy", onlyOurs, restartPolicy},
	}
	p.keeps = []string{v1beta1.TaskDeprecationsAnnotationKey, "tekton.dev/v1beta1Resources"}
	p.examples = map[string][]any{
		quantity:                             quantities,
		".spec.params[*].default":            values,
		".spec.results[*].value":             values,
		".spec.steps[*].params[*].value":     values,
		".spec.steps[*].ref.params[*].value": values,
		".spec.volumes":                      {[]any{map[string]any{"name": "work", "emptyDir": map[string]any{}}}},
		".spec.steps[*].timeout":             {"5m0s", "300s"},
	}
	p.check(t)
}

// tekton is a kind of Tekton Pipelines.
func tekton[Spoke, Hub any](t *testing.T, sample, kindName string) project {
	p := kind[Spoke, Hub](sample, "github.com/tektoncd/pipeline", "config/300-crds/300-"+kindName+".yaml")
	p.own = knative[*Spoke](t.Context())
	p.examples[quantity] = quantities
	return p
}

func TestStepAction(t *testing.T) {
	p := tekton[v1alpha1.StepAction, v1beta1.StepAction](t, "tekton-stepactions", "stepaction")
	p.examples[".spec.params[*].default"] = values
	p.check(t)
}

func TestPipeline(t *testing.T) {
	p := tekton[v1beta1.Pipeline, v1.Pipeline](t, "tekton-pipelines", "pipeline")
	p.keeps = []string{"tekton.dev/v1beta1Resources"}
	p.examples[".spec.params[*].default"], p.examples[".spec.results[*].value"] = values, values
	const (
		forgot = "theirs forgets the field, in both directions, and it is lost; ours copies it"
		empty  = "theirs drops a matrix without parameters; ours copies it"
	)
	for _, to := range []string{"v1beta1", "v1"} {
		p.differences = append(p.differences,
			difference{to, "**.pipelineRef", func(theirs, ours any) bool { return theirs == absent && ours != absent }, forgot},
			difference{to, "**.pipelineSpec", func(theirs, ours any) bool { return theirs == absent && ours != absent }, forgot},
			difference{to, "**.matrix", func(theirs, ours any) bool { return theirs == absent && show(ours) == "{}" }, empty})
	}
	// A task in a Pipeline has no schema, so a field of it that v1 does not have would be copied. Then
	// the Go type of v1 could not read it.
	for _, tasks := range []string{".spec.tasks[*]", ".spec.finally[*]"} {
		for _, params := range []string{".params", ".matrix.params", ".matrix.include[*].params", ".taskRef.params", ".pipelineRef.params"} {
			p.examples[tasks+params+"[*].value"] = values
		}
		p.examples[tasks+".timeout"] = []any{"5m0s", "300s"}
		p.examples[tasks+".taskSpec"] = []any{map[string]any{"steps": []any{map[string]any{"name": "one", "image": "example.com/image"}}}}
		p.examples[tasks+".pipelineSpec"] = []any{map[string]any{"tasks": []any{map[string]any{"name": "one", "taskRef": map[string]any{"name": "one"}}}}}
	}
	p.check(t)
}

func TestPipelineRun(t *testing.T) {
	p := tekton[v1beta1.PipelineRun, v1.PipelineRun](t, "tekton-pipelineruns", "pipelinerun")
	p.keeps = []string{"tekton.dev/v1beta1Resources"}
	for _, path := range []string{".spec.params", ".spec.pipelineRef.params", ".status.pipelineResults", ".status.results"} {
		p.examples[path+"[*].value"] = values
	}
	times := []any{"5m0s", "300s"}
	for _, path := range []string{".spec.timeout", ".spec.timeouts.pipeline", ".spec.timeouts.tasks", ".spec.timeouts.finally", ".spec.taskRunSpecs[*].timeout"} {
		p.examples[path] = times
	}
	pipeline := []any{map[string]any{"tasks": []any{map[string]any{"name": "one", "taskRef": map[string]any{"name": "one"}}}}}
	p.examples[".spec.pipelineSpec"], p.examples[".status.pipelineSpec"] = pipeline, pipeline
	// These are moved as a whole, or are the same.
	pod := []any{map[string]any{"nodeSelector": map[string]any{"disk": "ssd"}}, map[string]any{"hostNetwork": true}}
	for _, path := range []string{".spec.podTemplate", ".spec.taskRunTemplate.podTemplate", ".spec.taskRunSpecs[*].taskPodTemplate", ".spec.taskRunSpecs[*].podTemplate"} {
		p.examples[path] = pod
	}
	p.examples[".spec.workspaces"] = []any{[]any{map[string]any{"name": "work", "emptyDir": map[string]any{}}}}
	p.examples[".status.taskRuns"] = []any{map[string]any{"one": map[string]any{"pipelineTaskName": "one"}}}
	p.examples[".status.runs"] = p.examples[".status.taskRuns"]
	maps.Copy(p.examples, knativeStatus)
	const (
		forgot  = "theirs forgets the field, in both directions, and it is lost; ours copies it"
		labels  = "theirs writes the labels into the annotations, which are lost; ours copies both"
		timeout = "theirs drops the other timeouts of an object with .spec.timeout; ours copies them"
	)
	for _, to := range []string{"v1beta1", "v1"} {
		p.differences = append(p.differences,
			difference{to, ".spec.managedBy", onlyOurs, forgot}, difference{to, ".status.spanContext", onlyOurs, forgot})
	}
	p.differences = append(p.differences,
		difference{"v1beta1", ".spec.taskRunSpecs[*].metadata.annotations**", func(any, any) bool { return true }, labels},
		difference{"v1", ".spec.timeouts.tasks", onlyOurs, timeout},
		difference{"v1", ".spec.timeouts.finally", onlyOurs, timeout})
	p.check(t)
}

func TestTaskRun(t *testing.T) {
	p := tekton[v1beta1.TaskRun, v1.TaskRun](t, "tekton-taskruns", "taskrun")
	p.keeps = []string{"tekton.dev/v1beta1Resources", "tekton.dev/v1beta1CloudEvents", "tekton.dev/v1beta1ResourcesResult", "tekton.dev/v1beta1ResourcesStatus"}
	for _, path := range []string{".spec.params", ".spec.taskRef.params", ".status.taskResults", ".status.results", ".status.steps[*].results"} {
		p.examples[path+"[*].value"] = values
	}
	p.examples[".spec.timeout"] = []any{"5m0s", "300s"}
	// These are the same in both versions.
	task := []any{map[string]any{"steps": []any{map[string]any{"name": "one", "image": "example.com/image"}}}}
	p.examples[".spec.taskSpec"], p.examples[".status.taskSpec"] = task, task
	p.examples[".spec.podTemplate"] = []any{map[string]any{"nodeSelector": map[string]any{"disk": "ssd"}}}
	p.examples[".spec.workspaces"] = []any{[]any{map[string]any{"name": "work", "emptyDir": map[string]any{}}}}
	p.examples[".status.retriesStatus"] = []any{[]any{}}
	maps.Copy(p.examples, knativeStatus)
	const forgot = "theirs forgets the field, in both directions, and it is lost; ours copies it"
	for _, to := range []string{"v1beta1", "v1"} {
		for _, at := range []string{".spec.managedBy", ".status.spanContext", "**.buildOutput"} {
			p.differences = append(p.differences, difference{to, at, onlyOurs, forgot})
		}
	}
	p.check(t)
}

func TestResolutionRequest(t *testing.T) {
	p := tekton[resolutionv1alpha1.ResolutionRequest, resolutionv1beta1.ResolutionRequest](t, "tekton-resolutionrequests", "resolutionrequest")
	// Theirs writes several parameters in a random order, and fails for one that is no text.
	p.examples["v1alpha1:.spec.params"] = []any{map[string]any{}, map[string]any{"name": "value"}, map[string]any{"other": "text"}}
	p.examples["v1beta1:.spec.params"] = []any{[]any{}, []any{map[string]any{"name": "other", "value": "text"}}, []any{map[string]any{"name": "name", "value": "value"}}}
	const lost = "theirs forgets these fields of the status, in both directions, and they are lost; ours copies them"
	for _, to := range []string{"v1alpha1", "v1beta1"} {
		for _, field := range []string{"annotations", "conditions", "observedGeneration"} {
			p.differences = append(p.differences, difference{to, ".status." + field, onlyOurs, lost})
		}
	}
	source := []any{map[string]any{"uri": "https://example.com", "digest": map[string]any{"sha256": "abc"}, "entryPoint": "one"}}
	p.examples[".status.refSource"], p.examples[".status.source"] = source, source
	maps.Copy(p.examples, knativeStatus)
	p.check(t)
}

// knativeStatus are examples for the status of a kind of Knative and of those who use its libraries.
var knativeStatus = map[string][]any{
	".status.annotations":                      {map[string]any{"key": "value"}},
	".status.conditions[*].lastTransitionTime": {"2026-01-02T03:04:05Z"},
}

// TestEventType: Knative Eventing's v1beta3.
func TestEventType(t *testing.T) {
	attribute := func(name, value string) any {
		return map[string]any{"name": name, "required": true, "value": value}
	}
	p := kind[v1beta2.EventType, v1beta3.EventType]("knative-eventtypes", "knative.dev/eventing", "config/core/resources/eventtype.yaml")
	p.own = knative[*v1beta2.EventType](t.Context())
	p.differences = []difference{
		{"v1beta3", ".spec.attributes", func(theirs, ours any) bool { return theirs != absent && ours == nil },
			"theirs writes four attributes without values for an object without a spec; ours fills only objects that exist"},
	}
	p.examples = map[string][]any{
		".spec.schema": {"https://example.com/schema"},
		".spec.source": {"/apis/v1/source", "https://example.com/source"},
		".spec.attributes": {
			[]any{attribute("id", ""), attribute("type", "example"), attribute("source", "https://example.com/source")},
			[]any{attribute("schemadata", "https://example.com/schema"), attribute("subject", "example")},
			[]any{attribute("type", ""), attribute("source", ""), attribute("schemadata", "")},
			[]any{},
		},
	}
	maps.Copy(p.examples, knativeStatus)
	p.check(t)
}
