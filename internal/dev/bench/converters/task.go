// Copyright The conversion-operator Authors.
// SPDX-License-Identifier: Apache-2.0

package converters

import (
	"context"
	_ "embed" // for the manifests below
	"encoding/json"
	"fmt"
	"strings"

	apiextensionsv1 "k8s.io/apiextensions-apiserver/pkg/apis/apiextensions/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/types"
	utiljson "k8s.io/apimachinery/pkg/util/json"
	"k8s.io/client-go/rest"
	"sigs.k8s.io/yaml"

	"github.com/conversion-operator/conversion-operator/api/v1alpha1"
	"github.com/conversion-operator/conversion-operator/internal/engine/conversion"
	"github.com/conversion-operator/conversion-operator/internal/engine/conversion/compile"
	"github.com/conversion-operator/conversion-operator/internal/test/scenarios"
)

const (
	group = "bench.example.com"
	kind  = "Task"
)

// keptAnnotation and keptOwner are where our converter preserves spec.owner, which v2 lacks. The
// other converters use the same place.
const keptOwner = "/spec/owner"

var keptAnnotation = conversion.AnnotationName("tasks."+group, "v1")

// kept is the value of the annotation, as far as these converters need it.
type kept struct {
	Format int            `json:"format"`
	Fields map[string]any `json:"fields"`
}

// keep returns the annotation that preserves an owner.
func keep(owner any) (string, error) {
	const format = 2
	text, err := json.Marshal(kept{format, map[string]any{keptOwner: owner}})
	return string(text), err
}

// cronFields are the fields of v2 for the words of v1's cron string, in order.
var cronFields = []string{"minute", "hour", "dayOfMonth", "month", "dayOfWeek"}

// policies maps values of v1 to those of v2.
var policies = map[string]string{"Allow": "Parallel", "Forbid": "Serial", "Replace": "Latest"}

//go:embed crd.yaml
var crdYAML []byte

//go:embed rules.yaml
var rulesYAML []byte

// Definition returns the kind in a group.
func Definition(group string) (*apiextensionsv1.CustomResourceDefinition, error) {
	crd := &apiextensionsv1.CustomResourceDefinition{}
	if err := yaml.UnmarshalStrict(crdYAML, crd); err != nil {
		return nil, fmt.Errorf("crd.yaml: %w", err)
	}
	crd.Name, crd.Spec.Group = crd.Spec.Names.Plural+"."+group, group
	return crd, nil
}

// Rules returns the rules between the versions of the kind.
func Rules() (*v1alpha1.DeclarativeConverter, error) {
	rules := &v1alpha1.DeclarativeConverter{}
	if err := yaml.UnmarshalStrict(rulesYAML, rules); err != nil {
		return nil, fmt.Errorf("rules.yaml: %w", err)
	}
	return rules, nil
}

// newRuleset compiles the rules for the kind in a group.
func newRuleset(group string) (*conversion.Ruleset, error) {
	crd, err := Definition(group)
	if err != nil {
		return nil, err
	}
	rules, err := Rules()
	if err != nil {
		return nil, err
	}
	result := compile.Compile(crd, rules)
	if result.Ruleset == nil {
		return nil, fmt.Errorf("the rules for %s are refused: %v %v", crd.Name, result.Errors, result.Missing)
	}
	return result.Ruleset, nil
}

// body is a ConversionReview.
type body struct {
	// name of the case: shape, size and number of the objects.
	name    string
	objects int
	uid     types.UID
	desired string
	text    []byte
}

// shape describes the objects of a case.
type shape struct {
	name string
	// size in bytes. Large objects have a pod template.
	size int
	// owner adds a field that has to be preserved.
	owner bool
	// manyPorts fills the object with the list that a rule changes.
	manyPorts bool
}

const small, large = 2 << 10, 10 << 10

// cases are the bodies to convert. Most have one object, as API servers send one per review.
var cases = []struct {
	shape  shape
	counts []int
}{
	{shape{name: "kept", size: small, owner: true}, []int{1, 50, 500}},
	{shape{name: "kept", size: large, owner: true}, []int{1, 50, 500}},
	{shape{name: "plain", size: small}, []int{1, 500}},
	{shape{name: "plain", size: large}, []int{1, 500}},
	{shape{name: "list", size: large, manyPorts: true}, []int{1}},
}

// newBody writes a review as an API server does: with an empty response, and sorted members in
// every object.
func newBody(s shape, count int) (body, error) {
	b := body{name: fmt.Sprintf("%s %d KB x %d", s.name, s.size>>10, count), objects: count}
	b.uid, b.desired = "705ab4f5-6393-11e8-b7cc-42010a800002", group+"/v2"
	review := apiextensionsv1.ConversionReview{
		TypeMeta: metav1.TypeMeta{Kind: "ConversionReview", APIVersion: apiextensionsv1.SchemeGroupVersion.String()},
		Request:  &apiextensionsv1.ConversionRequest{UID: b.uid, DesiredAPIVersion: b.desired},
		Response: &apiextensionsv1.ConversionResponse{},
	}
	for i := range count {
		object, err := s.task(i)
		if err != nil {
			return body{}, err
		}
		text, err := json.Marshal(object)
		if err != nil {
			return body{}, err
		}
		review.Request.Objects = append(review.Request.Objects, runtime.RawExtension{Raw: text})
	}
	var err error
	b.text, err = json.Marshal(review)
	return b, err
}

//go:embed task.yaml
var taskYAML []byte

// task returns the nth object in v1, filled up to its size.
func (s shape) task(number int) (object map[string]any, err error) {
	text, err := yaml.YAMLToJSON(taskYAML)
	if err != nil {
		return nil, fmt.Errorf("task.yaml: %w", err)
	}
	if err := utiljson.Unmarshal([]byte(strings.ReplaceAll(string(text), "NUMBER", fmt.Sprintf("%04d", number))), &object); err != nil {
		return nil, fmt.Errorf("task.yaml: %w", err)
	}
	spec := within(object, "spec")
	if !s.owner {
		delete(spec, "owner")
	}
	if s.size < large || s.manyPorts {
		delete(spec, "template")
	}
	if s.size < large {
		metadata, status := within(object, "metadata"), within(object, "status")
		metadata["managedFields"], status["conditions"] = metadata["managedFields"].([]any)[:1], status["conditions"].([]any)[:1]
	}
	return object, s.fill(object, spec)
}

// fill appends to a list of the object up to the object's size.
func (s shape) fill(object, spec map[string]any) error {
	list, element := "env", func(n int) any {
		return map[string]any{"name": fmt.Sprintf("COLLECTOR_SETTING_%d", n), "value": fmt.Sprintf("https://example.com/settings/%d", n)}
	}
	if s.manyPorts {
		list, element = "ports", func(n int) any {
			return map[string]any{"name": fmt.Sprintf("port%d", n), "number": int64(9000 + n), "protocol": "TCP"}
		}
	}
	text, err := json.Marshal(object)
	for size, n := len(text), 0; size < s.size && err == nil; n++ {
		spec[list] = append(spec[list].([]any), element(n))
		text, err = json.Marshal(element(n))
		size += len(text) + len(",")
	}
	return err
}

// Create creates objects in v1 of a group, of some size in bytes. They have a field that v2 lacks. The
// smallest objects have about 1,500 bytes.
func Create(ctx context.Context, cluster *rest.Config, crd *apiextensionsv1.CustomResourceDefinition, count, size int) error {
	fleet, err := scenarios.NewFleet(cluster)
	if err != nil {
		return err
	}
	made := make([]*unstructured.Unstructured, count)
	for i := range made {
		if made[i], err = object(crd.Spec.Group, i, size); err != nil {
			return err
		}
	}
	resource := schema.GroupVersionResource{Group: crd.Spec.Group, Version: "v1", Resource: crd.Spec.Names.Plural}
	return fleet.Create(ctx, resource, count, func(i int) *unstructured.Unstructured { return made[i] })
}

func object(group string, number, size int) (*unstructured.Unstructured, error) {
	object, err := shape{owner: true, size: size}.task(number)
	if err != nil {
		return nil, err
	}
	object["apiVersion"] = group + "/v1"
	metadata := within(object, "metadata")
	for _, ofServer := range []string{"managedFields", "creationTimestamp", "generation", "namespace", "resourceVersion", "uid"} {
		delete(metadata, ofServer)
	}
	return &unstructured.Unstructured{Object: object}, nil
}
