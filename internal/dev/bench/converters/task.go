// Copyright The conversion-operator Authors.
// SPDX-License-Identifier: Apache-2.0

package converters

import (
	"bytes"
	"context"
	_ "embed" // for the manifests below
	"encoding/json"
	"fmt"
	"sync"

	apiextensionsv1 "k8s.io/apiextensions-apiserver/pkg/apis/apiextensions/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/client-go/rest"
	"sigs.k8s.io/yaml"

	"github.com/conversion-operator/conversion-operator/api/v1alpha1"
	"github.com/conversion-operator/conversion-operator/internal/engine/conversion"
	"github.com/conversion-operator/conversion-operator/internal/engine/conversion/compile"
	"github.com/conversion-operator/conversion-operator/internal/engine/preserve"
	"github.com/conversion-operator/conversion-operator/internal/test/scenarios"
)

const (
	group = "bench.example.com"
	kind  = "Task"
)

var reviewType = metav1.TypeMeta{Kind: "ConversionReview", APIVersion: apiextensionsv1.SchemeGroupVersion.String()}

// keptAnnotation and keptOwner are where our converter preserves spec.owner, which v2 lacks. The
// other converters use the same place.
const keptOwner = "/spec/owner"

var keptAnnotation = conversion.AnnotationName("tasks."+group, "v1")

// keep returns the annotation that preserves an owner, as far as these converters need it.
func keep(owner any) string {
	return string(encode(struct {
		Format int            `json:"format"`
		Rules  string         `json:"rules"`
		Hidden map[string]any `json:"hidden"`
	}{preserve.Format, keptRules(), map[string]any{keptOwner: owner}}))
}

// keptRules is what identifies our rules in the annotation: our converter says it.
var keptRules = sync.OnceValue(func() string {
	converter, err := conversion.NewConverter(compile.Compile(Definition(group), Rules()).Ruleset)
	if err != nil {
		panic(err) // the rules are embedded
	}
	there, err := converter.Explain([]byte(`{"apiVersion":"`+group+`/v1","kind":"`+kind+`","spec":{"owner":"a"}}`), "v2")
	if err != nil || len(there.Kept) != 1 {
		panic(fmt.Sprintf("the owner is not preserved: %v", err))
	}
	return there.Kept[0].Rules
})

// cronFields are the fields of v2 for the words of v1's cron string, in order.
var cronFields = []string{"minute", "hour", "dayOfMonth", "month", "dayOfWeek"}

// policies maps values of v1 to those of v2.
var policies = map[string]string{"Allow": "Parallel", "Forbid": "Serial", "Replace": "Latest"}

//go:embed crd.yaml
var crdYAML []byte

//go:embed rules.yaml
var rulesYAML []byte

//go:embed task.yaml
var taskYAML []byte

// read reads a file of this package.
func read[T any](text []byte) *T {
	into := new(T)
	if err := yaml.UnmarshalStrict(text, into); err != nil {
		panic(err) // it is embedded
	}
	return into
}

// encode returns a value as JSON.
func encode(value any) []byte {
	text, err := json.Marshal(value)
	if err != nil {
		panic(err) // values come from JSON
	}
	return text
}

// Definition returns the kind in a group.
func Definition(group string) *apiextensionsv1.CustomResourceDefinition {
	crd := read[apiextensionsv1.CustomResourceDefinition](crdYAML)
	crd.Name, crd.Spec.Group = crd.Spec.Names.Plural+"."+group, group
	return crd
}

// Rules returns the rules between the versions of the kind.
func Rules() *v1alpha1.DeclarativeConverter { return read[v1alpha1.DeclarativeConverter](rulesYAML) }

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
func newBody(s shape, count int) body {
	b := body{name: fmt.Sprintf("%s %d KB x %d", s.name, s.size>>10, count), objects: count, uid: "705ab4f5-6393-11e8-b7cc-42010a800002", desired: group + "/v2"}
	review := apiextensionsv1.ConversionReview{
		TypeMeta: reviewType,
		Request:  &apiextensionsv1.ConversionRequest{UID: b.uid, DesiredAPIVersion: b.desired},
		Response: &apiextensionsv1.ConversionResponse{},
	}
	for i := range count {
		review.Request.Objects = append(review.Request.Objects, runtime.RawExtension{Raw: encode(s.task(i))})
	}
	b.text = encode(review)
	return b
}

// task returns the nth object in v1, filled up to its size.
func (s shape) task(number int) map[string]any {
	object := read[unstructured.Unstructured](bytes.ReplaceAll(taskYAML, []byte("NUMBER"), fmt.Appendf(nil, "%04d", number))).Object
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
	list, element := "env", func(n int) any {
		return map[string]any{"name": fmt.Sprintf("COLLECTOR_SETTING_%d", n), "value": fmt.Sprintf("https://example.com/settings/%d", n)}
	}
	if s.manyPorts {
		list, element = "ports", func(n int) any {
			return map[string]any{"name": fmt.Sprintf("port%d", n), "number": int64(9000 + n), "protocol": "TCP"}
		}
	}
	for size, n := len(encode(object)), 0; size < s.size; n++ {
		spec[list] = append(spec[list].([]any), element(n))
		size += len(encode(element(n))) + len(",")
	}
	return object
}

// Create creates objects in v1 of a group, of some size in bytes. They have a field that v2 lacks. The
// smallest objects have about 1,500 bytes.
func Create(ctx context.Context, cluster *rest.Config, crd *apiextensionsv1.CustomResourceDefinition, count, size int) error {
	fleet, err := scenarios.NewFleet(cluster)
	if err != nil {
		return err
	}
	resource := schema.GroupVersionResource{Group: crd.Spec.Group, Version: "v1", Resource: crd.Spec.Names.Plural}
	return fleet.Create(ctx, resource, count, func(number int) *unstructured.Unstructured {
		object := shape{owner: true, size: size}.task(number)
		object["apiVersion"] = resource.GroupVersion().String()
		metadata := within(object, "metadata")
		for _, ofServer := range []string{"managedFields", "creationTimestamp", "generation", "namespace", "resourceVersion", "uid"} {
			delete(metadata, ofServer)
		}
		return &unstructured.Unstructured{Object: object}
	})
}
