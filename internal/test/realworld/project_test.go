// Copyright The conversion-operator Authors.
// SPDX-License-Identifier: Apache-2.0

package realworld

import (
	"bytes"
	"cmp"
	"context"
	"flag"
	"fmt"
	"maps"
	"math/rand/v2"
	"os"
	"os/exec"
	"path"
	"path/filepath"
	"reflect"
	"slices"
	"strings"
	"testing"

	"k8s.io/apiextensions-apiserver/pkg/apis/apiextensions"
	apiextensionsv1 "k8s.io/apiextensions-apiserver/pkg/apis/apiextensions/v1"
	"k8s.io/apiextensions-apiserver/pkg/apiserver/schema"
	"k8s.io/apiextensions-apiserver/pkg/apiserver/schema/listtype"
	"k8s.io/apiextensions-apiserver/pkg/apiserver/schema/pruning"
	"k8s.io/apiextensions-apiserver/pkg/apiserver/validation"
	utiljson "k8s.io/apimachinery/pkg/util/json"
	"k8s.io/apimachinery/pkg/util/validation/field"
	"knative.dev/pkg/apis"
	ctrlconversion "sigs.k8s.io/controller-runtime/pkg/conversion"
	"sigs.k8s.io/yaml"

	"github.com/conversion-operator/conversion-operator/api/v1alpha1"
	"github.com/conversion-operator/conversion-operator/internal/engine/conversion"
	"github.com/conversion-operator/conversion-operator/internal/engine/conversion/compile"
	"github.com/conversion-operator/conversion-operator/internal/test/expect"
)

// tabled is the number of objects per direction with the results in the table of the catalogue.
const tabled = 1000

var rounds = flag.Int("rounds", tabled, "objects per direction of each kind")

// top is the root of the repository.
var top = filepath.Join("..", "..", "..")

// project is a kind of another project, with both conversions.
type project struct {
	// sample is the folder of our policy in config/samples/catalogue.
	sample string
	// module is the Go module of the project, and crd a file in it.
	module, crd string
	// at is the folder of the module that requires the project's, if that is not the one of this package.
	at string
	// adapt changes the CustomResourceDefinition, if the validation of this package or the project's own functions
	// cannot use it.
	adapt func(crd *apiextensionsv1.CustomResourceDefinition)
	// spoke and hub are the versions that are compared.
	spoke, hub version
	// own is the project's own conversion.
	own func(from, to any) error
	// keeps are the annotations in which the project preserves fields.
	keeps []string
	// examples are values for fields, by path or by pattern. Paths of one version begin with its name
	// and a colon.
	examples    map[string][]any
	differences []difference
	// unsaid are fields that have a counterpart in the other version, with the reason why no rule says
	// so. The keys are as in a verdict, such as v1beta1:.spec.field; they are for all fields inside.
	unsaid map[string]string
}

// version is one version of the project's kind.
type version struct {
	name string
	// new returns an empty object of the project's Go type.
	new func() any
}

// kind returns a kind whose Go types are in packages with the names of their versions, and convert by the
// interfaces of controller-runtime.
func kind[Spoke, Hub any](sample, module, crd string) project {
	return project{sample: sample, module: module, crd: crd, spoke: of[Spoke](), hub: of[Hub](), own: convertible, examples: map[string][]any{}}
}

func of[T any]() version {
	return version{path.Base(reflect.TypeFor[T]().PkgPath()), func() any { return any(new(T)) }}
}

// convertible converts by the interfaces of controller-runtime, whichever version is the project's own hub.
func convertible(from, to any) error {
	if hub, isHub := to.(ctrlconversion.Hub); isHub {
		return from.(ctrlconversion.Convertible).ConvertTo(hub)
	}
	return to.(ctrlconversion.Convertible).ConvertFrom(from.(ctrlconversion.Hub))
}

// knative converts by the interface of Knative's libraries, which the type T implements for both directions.
func knative[T any](ctx context.Context) func(from, to any) error {
	return func(from, to any) error {
		source, target := from.(apis.Convertible), to.(apis.Convertible)
		if _, implements := from.(T); implements {
			return source.ConvertTo(ctx, target)
		}
		return target.ConvertFrom(ctx, source)
	}
}

// check converts random objects of both versions, and compares them as described in doc.go.
func (p *project) check(t *testing.T) {
	t.Parallel()
	crd, moduleVersion := p.definition(t)
	run := &run{project: p, kind: crd.Spec.Names.Kind, moduleVersion: moduleVersion, lost: map[string]int{}, seen: map[int]int{}, unknown: map[string]string{}}
	run.compile(t, crd)
	run.up = run.direction(t, crd, p.spoke, p.hub)
	run.down = run.direction(t, crd, p.hub, p.spoke)
	p.checkDraft(t, crd)
	for _, place := range slices.Sorted(maps.Keys(run.unknown)) {
		t.Errorf("differs, and no one says why: %s", run.unknown[place])
	}
	for i, known := range p.differences {
		t.Logf("%d times: to %s, %s: %s", run.seen[i], known.to, known.at, known.why)
		if run.seen[i] == 0 && !t.Failed() && *rounds >= tabled {
			t.Errorf("no object shows this difference any more: to %s, %s: %s", known.to, known.at, known.why)
		}
	}
	if !t.Failed() {
		run.checkRow(t)
	}
}

type run struct {
	*project
	kind, moduleVersion string
	converter           *conversion.Converter
	fields              fields
	// up and down are the results to the hub and from the hub.
	up, down tally
	// lost counts the objects in which the project's functions lose a value, by place.
	lost map[string]int
	// seen counts how often the known differences occurred, by index.
	seen map[int]int
	// unknown has an example of every other difference, by place.
	unknown map[string]string
}

// direction converts objects from one version to the other and back, with the project's functions
// and by the policy.
func (r *run) direction(t *testing.T, crd *apiextensionsv1.CustomResourceDefinition, from, to version) tally {
	var counted tally
	empty := 0
	source, target := schemaOf(t, crd, from.name), schemaOf(t, crd, to.name)
	made := &objects{Rand: rand.New(rand.NewPCG(1, 2)), examples: r.examplesOf(from)}
	for range *rounds {
		object := source.next(t, made, crd.Spec.Group+"/"+from.name, crd.Spec.Names.Kind)
		if isZero(asMap(decode(object))["spec"]) {
			empty++
		}
		ours := converted(t, r.converter, object, to.name)
		back := converted(t, r.converter, ours, from.name)
		if lost := compare(decode(object), decode(back), ""); len(lost) > 0 {
			t.Fatalf("comes back otherwise, went and came: %v\nof   %s\nto   %s\nback %s", lost, object, ours, back)
		}
		target.holds(t, ours)
		theirs := r.convert(t, object, from, to)
		losses := r.losses(t, object, theirs, from, to)
		if len(losses) > 0 {
			counted.lost++
		}
		for _, loss := range losses {
			if r.lost[from.name+":"+loss.at]++; r.lost[from.name+":"+loss.at] == 1 {
				t.Logf("theirs loses, went and came, %s:%s", from.name, loss)
			}
		}
		places := compare(r.plain(decode(theirs)), r.readable(t, ours, to), "")
		if len(places) == 0 {
			counted.same++
		}
		r.note(to, places, object, ours)
	}
	if empty > *rounds*3/4 {
		t.Errorf("%d of %d objects of %s have an empty spec: too few to tell; give more examples", empty, *rounds, from.name)
	}
	return counted
}

// note notes where the results for an object differ.
func (r *run) note(to version, places []found, object, ours []byte) {
	for _, place := range places {
		if i := r.known(to.name, place); i >= 0 {
			r.seen[i]++
		} else {
			r.unknown[to.name+place.at] = fmt.Sprintf("to %s, theirs and ours, %s\nof   %s\nours %s", to.name, place, object, ours)
		}
	}
}

// examplesOf returns the examples for a version, by path or by pattern.
func (p *project) examplesOf(v version) map[string][]any {
	examples := maps.Clone(p.examples)
	for path, values := range p.examples {
		if path, isOwn := strings.CutPrefix(path, v.name+":"); isOwn {
			examples[path] = values
		}
	}
	return examples
}

// known returns the index of the known difference at a place, or -1.
func (p *project) known(to string, place found) int {
	return slices.IndexFunc(p.differences, func(known difference) bool {
		return known.to == to && known.covers(place.at) && known.is(place.left, place.right)
	})
}

// convert converts an object with the project's functions.
func (p *project) convert(t *testing.T, object []byte, from, to version) []byte {
	t.Helper()
	source, target := from.new(), to.new()
	read(t, object, source)
	if err := p.own(source, target); err != nil {
		t.Fatalf("%s cannot be converted to %s by the project itself: %v", object, to.name, err)
	}
	return encode(t, target)
}

// losses returns the values of the object that are missing or different after the project's functions
// have converted it back. Zeros, false and empty values do not count, nor does the order of elements
// with a name: clients cannot rely on them.
func (p *project) losses(t *testing.T, object, theirs []byte, from, to version) []found {
	t.Helper()
	before, after := p.readable(t, object, from), p.plain(decode(p.convert(t, theirs, to, from)))
	sortByName(before)
	sortByName(after)
	return slices.DeleteFunc(compare(before, after, ""), func(place found) bool { return isZero(place.left) })
}

// readable normalises an object by the project's Go type: optional empty lists are omitted, and
// quantities are canonical.
func (p *project) readable(t *testing.T, object []byte, as version) any {
	t.Helper()
	target := as.new()
	read(t, object, target)
	return p.plain(decode(encode(t, target)))
}

// plain removes preserved data of both sides, and apiVersion and kind, which Go types leave to
// others.
func (p *project) plain(object any) any {
	root := asMap(object)
	delete(root, "apiVersion")
	delete(root, "kind")
	metadata := asMap(root["metadata"])
	for _, name := range p.keeps {
		delete(asMap(metadata["annotations"]), name)
	}
	return withoutPreserved(root)
}

// definition reads the project's CustomResourceDefinition from its module, whose version it also
// returns.
func (p *project) definition(t *testing.T) (*apiextensionsv1.CustomResourceDefinition, string) {
	t.Helper()
	module, err := exec.CommandContext(t.Context(), "go", "list", "-C", cmp.Or(p.at, "."), "-m", "-f", "{{.Dir}} {{.Version}}", p.module).Output()
	if err != nil {
		t.Fatalf("where is the module %s: %v", p.module, err)
	}
	dir, version, _ := strings.Cut(strings.TrimSpace(string(module)), " ")
	crd := p.document(t, filepath.Join(dir, p.crd))
	if p.adapt != nil {
		p.adapt(crd)
	}
	return crd, p.module + " " + version
}

// file is that of the sample's policy.
func (p *project) file() string { return filepath.Join(catalogue, p.sample, "policy.yaml") }

func (p *project) policy(t *testing.T) *v1alpha1.ConversionPolicy {
	t.Helper()
	policy := &v1alpha1.ConversionPolicy{}
	readYAML(t, p.file(), policy)
	return policy
}

// document reads the definition that the sample's policy names from a file with one or several.
func (p *project) document(t *testing.T, file string) *apiextensionsv1.CustomResourceDefinition {
	t.Helper()
	text, err := os.ReadFile(file)
	expect.NoError(t, err)
	policy := p.policy(t)
	for document := range bytes.SplitSeq(text, []byte("\n---\n")) {
		crd := &apiextensionsv1.CustomResourceDefinition{}
		if err := yaml.Unmarshal(document, crd); err != nil {
			t.Fatalf("%s: %v", file, err)
		}
		if crd.Name == policy.Name {
			return crd
		}
	}
	t.Fatalf("%s has no CustomResourceDefinition %s, which the policy is for", file, policy.Name)
	return nil
}

// compile compiles the sample's policy.
func (r *run) compile(t *testing.T, crd *apiextensionsv1.CustomResourceDefinition) {
	t.Helper()
	policy, file := r.policy(t), r.file()
	if text, err := os.ReadFile(file); err != nil || !strings.Contains(string(text), r.moduleVersion) {
		t.Errorf("the comment of %s must say that it is for %s (%v)", file, r.moduleVersion, err)
	}
	r.checkPolicy(t, policy)
	rules := policy.Spec.Converter.Declarative
	result := compile.Compile(crd, rules)
	if len(result.Errors) > 0 || len(result.Missing) > 0 {
		t.Fatalf("the policy is refused: %v, missing: %v", result.Errors, result.Missing)
	}
	for _, verdict := range result.Verdicts {
		t.Logf("%+v", verdict)
	}
	for _, warning := range result.Warnings {
		t.Log(warning)
	}
	r.fields = r.count(t, result.Leaves, rules)
	var err error
	if r.converter, err = conversion.NewConverter(result.Ruleset); err != nil {
		t.Fatal(err)
	}
}

// checkPolicy validates the policy against the schema of ConversionPolicy.
func (p *project) checkPolicy(t *testing.T, policy *v1alpha1.ConversionPolicy) {
	t.Helper()
	crd := &apiextensionsv1.CustomResourceDefinition{}
	readYAML(t, filepath.Join(top, "config", "crd", "bases", "conversion-operator.io_conversionpolicies.yaml"), crd)
	checked := schemaOf(t, crd, v1alpha1.GroupVersion.Version)
	errs := validation.ValidateCustomResource(nil, generic(t, encode(t, policy)), checked.validator)
	if len(errs) > 0 {
		t.Errorf("the API server would refuse the policy: %v", errs)
	}
}

func readYAML(t *testing.T, file string, into any) {
	t.Helper()
	text, err := os.ReadFile(file)
	expect.NoError(t, err)
	if err := yaml.UnmarshalStrict(text, into); err != nil {
		t.Fatalf("%s: %v", file, err)
	}
}

func converted(t *testing.T, converter *conversion.Converter, object []byte, to string) []byte {
	t.Helper()
	result, err := converter.Convert(nil, object, to)
	if err != nil {
		t.Fatalf("to %s: %v: %s", to, err, object)
	}
	return result
}

// checked is the schema of one version, with the API server's structural form of it.
type checked struct {
	schema     *apiextensionsv1.JSONSchemaProps
	structural *schema.Structural
	validator  validation.SchemaValidator
}

func schemaOf(t *testing.T, crd *apiextensionsv1.CustomResourceDefinition, version string) *checked {
	t.Helper()
	for i := range crd.Spec.Versions {
		if crd.Spec.Versions[i].Name != version {
			continue
		}
		c := &checked{schema: crd.Spec.Versions[i].Schema.OpenAPIV3Schema}
		internal := &apiextensions.JSONSchemaProps{}
		err := apiextensionsv1.Convert_v1_JSONSchemaProps_To_apiextensions_JSONSchemaProps(c.schema, internal, nil)
		expect.NoError(t, err)
		if c.structural, err = schema.NewStructural(internal); err != nil {
			t.Fatal(err)
		}
		if c.validator, _, err = validation.NewSchemaValidator(internal); err != nil {
			t.Fatal(err)
		}
		return c
	}
	t.Fatalf("the CustomResourceDefinition has no version %s", version)
	return nil
}

// next returns a valid random object.
func (c *checked) next(t *testing.T, made *objects, apiVersion, kind string) []byte {
	t.Helper()
	var errs field.ErrorList
	for range 1000 {
		object := encode(t, made.object(apiVersion, kind, c.schema))
		if errs = c.validate(t, object); len(errs) == 0 {
			return object
		}
	}
	t.Fatalf("no valid object of %s in 1000: %v", apiVersion, errs)
	return nil
}

// validate validates an object like the API server, but without CEL rules.
func (c *checked) validate(t *testing.T, object []byte) field.ErrorList {
	t.Helper()
	value := asMap(generic(t, object))
	return append(validation.ValidateCustomResource(nil, value, c.validator),
		listtype.ValidateListSetsAndMaps(nil, c.structural, value)...)
}

// holds fails the test if the API server would prune a field of the object.
func (c *checked) holds(t *testing.T, object []byte) {
	t.Helper()
	pruned := asMap(generic(t, object))
	pruning.Prune(pruned, c.structural, true)
	if lost := compare(generic(t, object), pruned, ""); len(lost) > 0 {
		t.Fatalf("the schema has no place for some of it, made and left: %v\nof %s", lost, object)
	}
}

// generic decodes JSON as the API server's libraries expect it.
func generic(t *testing.T, text []byte) any {
	t.Helper()
	var value any
	expect.NoError(t, utiljson.Unmarshal(text, &value))
	return value
}
