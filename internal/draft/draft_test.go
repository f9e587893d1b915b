// Copyright The conversion-operator Authors.
// SPDX-License-Identifier: Apache-2.0

package draft

import (
	"errors"
	"fmt"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	apiextensionsv1 "k8s.io/apiextensions-apiserver/pkg/apis/apiextensions/v1"
	"sigs.k8s.io/yaml"

	"github.com/conversion-operator/conversion-operator/api/v1alpha1"
	"github.com/conversion-operator/conversion-operator/internal/conversion/compile"
	"github.com/conversion-operator/conversion-operator/internal/test/expect"
)

// widgets returns a CustomResourceDefinition. Each version has the properties of .spec, as YAML in flow style.
func widgets(t testing.TB, v1, v2 string) *apiextensionsv1.CustomResourceDefinition {
	t.Helper()
	crd := &apiextensionsv1.CustomResourceDefinition{}
	crd.Name, crd.Spec.Group, crd.Spec.Scope = "widgets.example.com", "example.com", apiextensionsv1.NamespaceScoped
	crd.Spec.Names.Kind, crd.Spec.Names.Plural = "Widget", "widgets"
	for i, properties := range []string{v1, v2} {
		schema := &apiextensionsv1.JSONSchemaProps{}
		expect.NoError(t, yaml.UnmarshalStrict([]byte("{type: object, properties: {spec: {type: object, properties: {"+properties+"}}}}"), schema))
		crd.Spec.Versions = append(crd.Spec.Versions, apiextensionsv1.CustomResourceDefinitionVersion{
			Name: fmt.Sprintf("v%d", i+1), Schema: &apiextensionsv1.CustomResourceValidation{OpenAPIV3Schema: schema},
		})
	}
	return crd
}

func rulesOf(t testing.TB, texts ...string) *v1alpha1.DeclarativeConverter {
	t.Helper()
	spoke := v1alpha1.Spoke{Version: "v1"}
	for _, text := range texts {
		rule := v1alpha1.Rule{}
		expect.NoError(t, yaml.UnmarshalStrict([]byte(text), &rule))
		spoke.Rules = append(spoke.Rules, rule)
	}
	return &v1alpha1.DeclarativeConverter{Hub: "v2", Spokes: []v1alpha1.Spoke{spoke}}
}

// textsOf returns the rules of a draft, as a policy has them.
func textsOf(draft *Draft) []string {
	texts := []string{}
	for _, rule := range draft.Rules {
		texts = append(texts, flow(rule.Rule))
	}
	return texts
}

func make2(t *testing.T, input Input) *Draft {
	t.Helper()
	input.Spoke, input.Hub = "v1", "v2"
	draft, err := Make(input)
	expect.NoError(t, err)
	result := compile.Compile(input.CRD, draft.Policy.Spec.Converter.Declarative)
	expect.NoError(t, result.Errors.ToAggregate())
	return draft
}

// kinds has a change of a schema for each kind of rule, and the rules.
var kinds = map[string]struct {
	v1, v2 string
	rules  []string
	// unguessed is set if the schemas alone do not decide.
	unguessed bool
	// asGood are rules that do the same.
	asGood []string
}{
	"move": {
		`image: {type: string}`, `container: {type: object, properties: {image: {type: string, description: x}}}`,
		[]string{`move: {from: .spec.image, to: .spec.container.image}`}, false, nil,
	},
	"move with another name": {
		`imageName: {type: string, description: "the image that the job runs"}`, `imageRef: {type: string, description: "the image that the job runs"}`,
		[]string{`move: {from: .spec.imageName, to: .spec.imageRef}`}, false, nil,
	},
	"a list with another name": {
		`servers: {type: array, items: {type: object, properties: {host: {type: string}, zone: {type: string}, hostTimeout: {type: string}}}}`,
		`serverEndpoints: {type: array, items: {type: object, properties: {address: {type: string}, zone: {type: string}, hostTimeoutSeconds: {type: integer}}}}`,
		[]string{
			`move: {from: .spec.servers, to: .spec.serverEndpoints}`,
			`move: {from: '.spec.servers[*].host', to: '.spec.serverEndpoints[*].address'}`,
			`cast: {from: '.spec.servers[*].hostTimeout', to: '.spec.serverEndpoints[*].hostTimeoutSeconds', as: Seconds}`,
		}, true, nil,
	},
	"an object with another name": {
		`net: {type: object, properties: {mode: {type: string}, mtu: {type: integer}, extra: {type: string}}}`,
		`network: {type: object, properties: {mode: {type: string}, mtu: {type: integer}, other: {type: boolean}}}`,
		[]string{`move: {from: .spec.net, to: .spec.network}`}, false,
		[]string{`move: {from: .spec.net.mode, to: .spec.network.mode}`, `move: {from: .spec.net.mtu, to: .spec.network.mtu}`},
	},
	"cast": {
		`ttl: {type: string}`, `ttlSeconds: {type: integer}`, []string{`cast: {from: .spec.ttl, to: .spec.ttlSeconds, as: Seconds}`}, false, nil,
	},
	"a text of an object": {
		`config: {type: string}`, `config: {type: object, properties: {level: {type: string}, outputs: {type: array, items: {type: object, properties: {name: {type: string}}}}}}`,
		[]string{`cast: {from: .spec.config, to: .spec.config, as: YAML}`}, true, nil,
	},
	"a text of a map": {
		`labels: {type: object, additionalProperties: {type: string}}`, `labels: {type: string}`,
		[]string{`cast: {from: .spec.labels, to: .spec.labels, as: JSON}`}, true, nil,
	},
	"quantity": {
		`cacheMemory: {type: string}`, `cacheMemoryMiB: {type: integer}`, []string{`cast: {from: .spec.cacheMemory, to: .spec.cacheMemoryMiB, as: Quantity, unit: Mi}`}, false, nil,
	},
	"number": {
		`ratio: {type: string}`, `ratio: {type: number}`, []string{`cast: {from: .spec.ratio, to: .spec.ratio, as: Number}`}, true, nil,
	},
	"integer": {
		`port: {type: string}`, `port: {type: integer}`, []string{`cast: {from: .spec.port, to: .spec.port, as: Integer}`}, true, nil,
	},
	"wrap": {
		`node: {type: string}`, `nodes: {type: array, items: {type: string}}`, []string{`wrap: {from: .spec.node, to: .spec.nodes}`}, false, nil,
	},
	"wrap of objects": {
		`ref: {type: object, properties: {name: {type: string}, kind: {type: string}}}`,
		`refs: {type: array, items: {type: object, properties: {name: {type: string}, kind: {type: string}}}}`,
		[]string{`wrap: {from: .spec.ref, to: .spec.refs}`}, false, nil,
	},
	"index": {
		`env: {type: array, items: {type: object, required: [name], properties: {name: {type: string}, value: {type: string}}}}`,
		`env: {type: object, additionalProperties: {type: object, properties: {value: {type: string}}}}`,
		[]string{`index: {from: .spec.env, to: .spec.env, key: name}`}, false, nil,
	},
	"values": {
		`concurrency: {type: string, enum: [Allow, Forbid]}`, `concurrency: {type: string, enum: [Parallel, Serial]}`,
		[]string{`values: {from: .spec.concurrency, to: .spec.concurrency, table: [{from: Allow, to: Parallel}, {from: Forbid, to: Serial}]}`}, true, nil,
	},
	"a boolean": {
		`cacheEnabled: {type: boolean}`, `cacheState: {type: string, enum: [Disabled, Enabled]}`,
		[]string{`values: {from: .spec.cacheEnabled, to: .spec.cacheState, table: [{from: "false", to: Disabled}, {from: "true", to: Enabled}]}`}, true, nil,
	},
	"format": {
		`addr: {type: string}`, `host: {type: string}, port: {type: integer}`,
		[]string{`format: {from: .spec.addr, template: '{host}:{port}', to: {host: .spec.host, port: .spec.port}}`}, true, nil,
	},
	"default": {
		`a: {type: string}`, `a: {type: string}, mode: {type: string, default: Standard}`,
		[]string{`default: {to: .spec.mode, value: Standard}`}, false, nil,
	},
	"a boolean in text": {
		`cached: {type: string}`, `cached: {type: boolean}`, []string{`cast: {from: .spec.cached, to: .spec.cached, as: Boolean}`}, true, nil,
	},
	"a boolean in text with a default": {
		`cached: {type: string, default: "true"}`, `cached: {type: boolean}`, []string{`cast: {from: .spec.cached, to: .spec.cached, as: Boolean}`}, false, nil,
	},
	"timestamp": {
		`startTime: {type: string, format: date-time}`, `startTime: {type: integer}`, []string{`cast: {from: .spec.startTime, to: .spec.startTime, as: Timestamp}`}, false, nil,
	},
	"list in text": {
		`zones: {type: string}`, `zones: {type: array, items: {type: string}}`, []string{`cast: {from: .spec.zones, to: .spec.zones, as: List, separator: ','}`}, true, nil,
	},
	"list in text with a description": {
		`zones: {type: array, items: {type: string}}`, `zones: {type: string, description: "Space-separated names."}`,
		[]string{`cast: {from: .spec.zones, to: .spec.zones, as: List, separator: ' '}`}, false, nil,
	},
	"wrap in a field": {
		`secrets: {type: array, items: {type: string}}`, `secrets: {type: array, items: {type: object, required: [name], properties: {name: {type: string}, optional: {type: boolean}}}}`,
		[]string{`wrap: {from: .spec.secrets, to: .spec.secrets, field: name}`}, false, nil,
	},
	"wrap in a field of the spoke": {
		`secretRefs: {type: array, items: {type: object, properties: {name: {type: string}, namespace: {type: string}}}}`, `secrets: {type: array, items: {type: string}}`,
		[]string{`wrap: {from: .spec.secretRefs, to: .spec.secrets, field: name}`}, true, nil,
	},
	"wrap in a map": {
		`limits: {type: object, additionalProperties: {type: integer}}`, `limits: {type: object, additionalProperties: {type: object, properties: {max: {type: integer}}}}`,
		[]string{`wrap: {from: .spec.limits, to: .spec.limits, field: max}`}, false, nil,
	},
	"index of values": {
		`env: {type: object, additionalProperties: {type: string}}`, `env: {type: array, items: {type: object, required: [name], properties: {name: {type: string}, value: {type: string}}}}`,
		[]string{`index: {from: .spec.env, to: .spec.env, key: name, value: value}`}, false, nil,
	},
	"index of values with other names": {
		`labels: {type: array, items: {type: object, properties: {label: {type: string}, text: {type: string}}}}`, `labels: {type: object, additionalProperties: {type: string}}`,
		[]string{`index: {from: .spec.labels, to: .spec.labels, key: label, value: text}`}, true, nil,
	},
	"a swap": {
		`a: {type: string}, b: {type: string}`, `a: {type: string}, b: {type: string}`,
		[]string{`move: {from: .spec.a, to: .spec.b}`, `move: {from: .spec.b, to: .spec.a}`}, true, nil,
	},
	"a list to another object": {
		`checks: {type: array, items: {type: object, properties: {type: {type: string}, status: {type: string}}}}`,
		`health: {type: object, properties: {checks: {type: array, items: {type: object, properties: {type: {type: string}, status: {type: string}}}}}}`,
		[]string{`move: {from: .spec.checks, to: .spec.health.checks}`}, false, nil,
	},
}

// TestKinds drafts a rule of each kind. Probing finds all, and the schemas alone find no wrong one.
func TestKinds(t *testing.T) {
	for name, test := range kinds {
		t.Run(name, func(t *testing.T) {
			crd, rules := widgets(t, test.v1, test.v2), rulesOf(t, test.rules...)
			var want []string
			for _, rule := range rules.Spokes[0].Rules {
				want = append(want, flow(rule))
			}
			slices.Sort(want)
			probed := make2(t, Input{CRD: crd, Convert: engine(t, crd, rules)})
			got := textsOf(probed)
			slices.Sort(got)
			if diff := cmp.Diff(want, got); diff != "" {
				t.Errorf("by probing (-want +got):\n%s\n%+v", diff, probed)
			}
			if len(probed.Differences)+len(probed.Ambiguous)+len(probed.Probe.Problems) > 0 {
				t.Errorf("by probing, something is open: %+v", probed)
			}
			guessed := make2(t, Input{CRD: crd})
			for _, rule := range textsOf(guessed) {
				if !slices.Contains(slices.Concat(want, test.asGood), rule) {
					t.Errorf("by the schemas alone, there is the wrong rule %s", rule)
				}
			}
			if test.unguessed != (len(guessed.Rules) < len(want)) {
				t.Errorf("by the schemas alone, there are the rules %s: %+v", textsOf(guessed), guessed.Ambiguous)
			}
		})
	}
}

// TestKindsByPairs drafts the same rules from objects at both versions.
func TestKindsByPairs(t *testing.T) {
	for name, test := range kinds {
		if name == "default" || name == "list in text" {
			continue // another object of a pair may have had the value; lists with one element look like wrapped values
		}
		t.Run(name, func(t *testing.T) {
			s := &sample{crd: widgets(t, test.v1, test.v2), policy: &v1alpha1.ConversionPolicy{}}
			s.policy.Spec.Converter.Declarative = rulesOf(t, test.rules...)
			var want []string
			for _, rule := range s.policy.Spec.Converter.Declarative.Spokes[0].Rules {
				want = append(want, flow(rule))
			}
			made := make2(t, Input{CRD: s.crd, Pairs: pairsOf(t, s, engine(t, s.crd, s.policy.Spec.Converter.Declarative))})
			got := textsOf(made)
			slices.Sort(want)
			slices.Sort(got)
			if diff := cmp.Diff(want, got); diff != "" {
				t.Errorf("from pairs (-want +got):\n%s\n%+v", diff, made)
			}
		})
	}
}

// TestRivals: of several fields that are as likely, none gets a rule.
func TestRivals(t *testing.T) {
	crd := widgets(t, `timeout: {type: string}`, `readTimeout: {type: string}, writeTimeout: {type: string}`)
	guessed := make2(t, Input{CRD: crd})
	if len(guessed.Rules) > 0 || len(guessed.Ambiguous) == 0 || !guessed.IsAmbiguous() {
		t.Errorf("the draft is %+v", guessed)
	}
	pair := Pair{
		[]byte(`{"apiVersion": "example.com/v1", "kind": "Widget", "metadata": {"name": "a"}, "spec": {"timeout": "90s"}}`),
		[]byte(`{"apiVersion": "example.com/v2", "kind": "Widget", "metadata": {"name": "a"}, "spec": {"readTimeout": "90s", "writeTimeout": "90s"}}`),
	}
	observed := make2(t, Input{CRD: crd, Pairs: []Pair{pair}})
	if len(observed.Rules) > 0 || len(observed.Ambiguous) == 0 {
		t.Errorf("the draft is %+v", observed)
	}
	other := Pair{[]byte(strings.ReplaceAll(string(pair.Spoke), "90s", "5s")), []byte(strings.ReplaceAll(string(pair.Hub), `"writeTimeout": "90s"`, `"writeTimeout": "5s"`))}
	observed = make2(t, Input{CRD: crd, Pairs: []Pair{pair, other}})
	expect.Equal(t, "rules", []string{"move: {from: .spec.timeout, to: .spec.writeTimeout}"}, textsOf(observed))
}

// TestHints: a hint decides between rivals, unless objects refute it.
func TestHints(t *testing.T) {
	crd := widgets(t, `timeout: {type: string}, net: {type: object, properties: {a: {type: string}}}`,
		`readTimeout: {type: string}, writeTimeout: {type: string}, mesh: {type: object, properties: {a: {type: string}, b: {type: string}}}`)
	hints := [][2]string{{".spec.timeout", ".spec.readTimeout"}, {".spec.net", ".spec.mesh"}}
	want := []string{"move: {from: .spec.net, to: .spec.mesh}", "move: {from: .spec.timeout, to: .spec.readTimeout}"}
	expect.Equal(t, "rules", want, textsOf(make2(t, Input{CRD: crd, Hints: hints})))
	refuted := make2(t, Input{CRD: crd, Hints: hints, Pairs: []Pair{{
		[]byte(`{"apiVersion": "example.com/v1", "kind": "Widget", "metadata": {"name": "a"}, "spec": {"timeout": "90s"}}`),
		[]byte(`{"apiVersion": "example.com/v2", "kind": "Widget", "metadata": {"name": "a"}, "spec": {"readTimeout": "5s", "writeTimeout": "90s"}}`),
	}}})
	want[1] = "move: {from: .spec.timeout, to: .spec.writeTimeout}"
	if diff := cmp.Diff(want, textsOf(refuted)); diff != "" || !refuted.IsAmbiguous() {
		t.Errorf("rules (-want +got):\n%s\n%+v", diff, refuted.Ambiguous)
	}
	for _, hint := range [][2]string{{".spec.timeout", ".spec.none"}, {".spec.timeout", ".spec.mesh"}} {
		if _, err := Make(Input{CRD: crd, Spoke: "v1", Hub: "v2", Hints: [][2]string{hint}}); err == nil || !strings.Contains(err.Error(), "hint") {
			t.Errorf("%s: the error is %v", hint, err)
		}
	}
}

// TestRefuted: pairs refute a rule that the schemas suggest.
func TestRefuted(t *testing.T) {
	crd := widgets(t, `imageName: {type: string, description: "the image that the job runs"}`, `imageRef: {type: string, description: "the image that the job runs"}`)
	draft := make2(t, Input{CRD: crd, Pairs: []Pair{{
		[]byte(`{"apiVersion": "example.com/v1", "kind": "Widget", "metadata": {"name": "a"}, "spec": {"imageName": "alpha"}}`),
		[]byte(`{"apiVersion": "example.com/v2", "kind": "Widget", "metadata": {"name": "a"}, "spec": {"imageRef": "beta"}}`),
	}}})
	if len(draft.Rules) > 0 {
		t.Errorf("the draft is %+v", draft)
	}
}

// TestConverters: a converter that is not to be relied on is noticed.
func TestConverters(t *testing.T) {
	crd := widgets(t, `image: {type: string}`, `container: {type: object, properties: {image: {type: string}}}`)
	right := engine(t, crd, rulesOf(t, `move: {from: .spec.image, to: .spec.container.image}`))
	calls := 0
	for name, test := range map[string]struct {
		convert      Convert
		problem, err string
	}{
		"answers differently each time": {func(to string, objects [][]byte) ([][]byte, error) {
			calls++
			answers, err := right(to, objects)
			for i := range answers {
				answers[i] = []byte(strings.ReplaceAll(string(answers[i]), `"p`, fmt.Sprintf(`"p%d`, calls)))
			}
			return answers, err
		}, "the same answer each time", ""},
		"answers at the wrong version": {func(_ string, objects [][]byte) ([][]byte, error) { return objects, nil }, "answers with apiVersion", ""},
		"renames objects": {func(to string, objects [][]byte) ([][]byte, error) {
			answers, err := right(to, objects)
			for i := range answers {
				answers[i] = []byte(strings.ReplaceAll(string(answers[i]), "conversion-probe", "other"))
			}
			return answers, err
		}, "changes the kind, name", ""},
		"answers too little": {func(to string, objects [][]byte) ([][]byte, error) {
			answers, err := right(to, objects)
			return answers[1:], err
		}, "", "objects, not"},
		"answers no JSON": {func(_ string, objects [][]byte) ([][]byte, error) { return make([][]byte, len(objects)), nil }, "", "read an answer"},
		"answers no object": {func(_ string, objects [][]byte) ([][]byte, error) {
			answers := make([][]byte, len(objects))
			for i := range answers {
				answers[i] = []byte("[]")
			}
			return answers, nil
		}, "is no object", ""},
		"refuses everything": {func(string, [][]byte) ([][]byte, error) { return nil, ErrRefused }, "", "refuses every object"},
		"fails":              {func(string, [][]byte) ([][]byte, error) { return nil, errors.New("it hangs") }, "", "it hangs"},
	} {
		t.Run(name, func(t *testing.T) {
			draft, err := Make(Input{CRD: crd, Spoke: "v1", Hub: "v2", Convert: test.convert})
			switch {
			case test.err != "":
				if err == nil || !strings.Contains(err.Error(), test.err) {
					t.Errorf("the error is %v", err)
				}
			case err != nil:
				t.Error(err)
			case !strings.Contains(strings.Join(draft.Probe.Problems, "\n"), test.problem) || !draft.IsAmbiguous():
				t.Errorf("the problems are %q", draft.Probe.Problems)
			}
		})
	}
}

// TestSomeAreRefused: a converter that refuses some values is still asked about the others.
func TestSomeAreRefused(t *testing.T) {
	crd := widgets(t, `image: {type: string}, ttl: {type: string}`, `container: {type: object, properties: {image: {type: string}}}, ttlSeconds: {type: integer}`)
	right := engine(t, crd, rulesOf(t, `move: {from: .spec.image, to: .spec.container.image}`, `cast: {from: .spec.ttl, to: .spec.ttlSeconds, as: Seconds}`))
	draft := make2(t, Input{CRD: crd, Convert: func(to string, objects [][]byte) ([][]byte, error) {
		for _, object := range objects {
			if text := string(object); strings.Contains(text, `"ttl":"`) && !strings.Contains(text, `s"}`) && !strings.Contains(text, `s",`) {
				return nil, fmt.Errorf("%w: no duration", ErrRefused)
			}
		}
		return right(to, objects)
	}})
	want := []string{"move: {from: .spec.image, to: .spec.container.image}", "cast: {from: .spec.ttl, to: .spec.ttlSeconds, as: Seconds}"}
	if diff := cmp.Diff(want, textsOf(draft)); diff != "" || draft.Probe.Refused == 0 {
		t.Errorf("rules (-want +got):\n%s\n%+v", diff, draft.Probe)
	}
}

// TestHostile: what is not a pair of structural schemas is refused, and nothing in a schema leaves its comment.
func TestHostile(t *testing.T) {
	crd := widgets(t, `a: {type: string}`, `a: {type: string}`)
	for name, test := range map[string]struct {
		change func(crd *apiextensionsv1.CustomResourceDefinition)
		spoke  string
		want   string
	}{
		"no such version": {func(*apiextensionsv1.CustomResourceDefinition) {}, "v3", "no version"},
		"one version":     {func(*apiextensionsv1.CustomResourceDefinition) {}, "v2", "nothing to convert"},
		"unknown fields":  {func(crd *apiextensionsv1.CustomResourceDefinition) { crd.Spec.PreserveUnknownFields = true }, "v1", "unknown structure"},
		"not structural": {func(crd *apiextensionsv1.CustomResourceDefinition) {
			crd.Spec.Versions[0].Schema.OpenAPIV3Schema.Properties["spec"] = props{Properties: map[string]props{"a": {}}, Type: "object", Items: &apiextensionsv1.JSONSchemaPropsOrArray{JSONSchemas: []props{{}}}}
		}, "v1", "structural"},
	} {
		t.Run(name, func(t *testing.T) {
			crd := crd.DeepCopy()
			test.change(crd)
			if _, err := Make(Input{CRD: crd, Spoke: test.spoke, Hub: "v2"}); err == nil || !strings.Contains(err.Error(), test.want) {
				t.Errorf("the error is %v, want %s", err, test.want)
			}
		})
	}
	hostile := widgets(t, `"x\n- drop: {from: .spec.y}\nz": {type: string}, "{}": {type: string}, "a b": {type: string}`, `"x\u2028w": {type: string}, n: {type: array, items: {type: string}}`)
	var out strings.Builder
	expect.NoError(t, make2(t, Input{CRD: hostile}).WriteText(&out))
	policy := &v1alpha1.ConversionPolicy{}
	expect.NoError(t, yaml.UnmarshalStrict([]byte(out.String()), policy))
	if rules := policy.Spec.Converter.Declarative.Spokes[0].Rules; len(rules) > 0 {
		t.Errorf("the policy has the rules %+v", rules)
	}
}

// large returns two versions with n leaves each, of which most have other names in the other.
func large(t testing.TB, n int) *apiextensionsv1.CustomResourceDefinition {
	t.Helper()
	nouns := []string{"Timeout", "Limit", "Image", "Policy", "Address", "Weight", "Class", "Budget"}
	var v1, v2 strings.Builder
	for group := range n / 50 {
		fmt.Fprintf(&v1, "part%d: {type: object, properties: {", group)
		fmt.Fprintf(&v2, "part%d: {type: object, properties: {", group)
		for i := range 50 {
			fmt.Fprintf(&v1, "%s%d: {type: string}, ", strings.ToLower(nouns[i%8])+nouns[(i/8)%8], i)
			fmt.Fprintf(&v2, "new%s%d: {type: string}, ", nouns[i%8]+nouns[(i/8)%8], i)
		}
		v1.WriteString("}}, ")
		v2.WriteString("}}, ")
	}
	return widgets(t, v1.String(), v2.String())
}

// TestLarge drafts from schemas with 10,000 leaves. How long that takes is measured by BenchmarkGuess.
func TestLarge(t *testing.T) {
	crd := large(t, 10_000)
	draft, err := Make(Input{CRD: crd, Spoke: "v1", Hub: "v2"})
	expect.NoError(t, err)
	if len(draft.Rules) != maxRules || len(draft.Ambiguous) == 0 || !strings.Contains(draft.Ambiguous[0].Why, "at most 256 rules") {
		t.Errorf("there are %d rules, and %d ambiguous fields", len(draft.Rules), len(draft.Ambiguous))
	}
}

// BenchmarkProbe asks a converter with 40 rules between schemas with many leaves.
func BenchmarkProbe(b *testing.B) {
	for _, n := range []int{2_500, 5_000, 10_000} {
		v1, v2 := &strings.Builder{}, &strings.Builder{}
		var rules []string
		for i := range n {
			fmt.Fprintf(v1, "f%d: {type: string}, ", i)
			name := fmt.Sprintf("f%d", i)
			if i%(n/40) == 0 {
				name = fmt.Sprintf("renamed%d", i)
				rules = append(rules, fmt.Sprintf("move: {from: .spec.f%d, to: .spec.%s}", i, name))
			}
			fmt.Fprintf(v2, "%s: {type: string}, ", name)
		}
		crd := widgets(b, v1.String(), v2.String())
		convert := engine(b, crd, rulesOf(b, rules...))
		b.Run(fmt.Sprint(n), func(b *testing.B) {
			for b.Loop() {
				draft, err := Make(Input{CRD: crd, Spoke: "v1", Hub: "v2", Convert: convert})
				expect.NoError(b, err)
				if len(draft.Rules) != len(rules) {
					b.Errorf("there are %d rules", len(draft.Rules))
				}
			}
		})
	}
}

func BenchmarkGuess(b *testing.B) {
	for _, n := range []int{2_500, 5_000, 10_000} {
		crd := large(b, n)
		b.Run(fmt.Sprint(n), func(b *testing.B) {
			for b.Loop() {
				start := time.Now()
				g := newGuesser(crd.Spec.Versions[0].Schema.OpenAPIV3Schema, crd.Spec.Versions[1].Schema.OpenAPIV3Schema)
				g.guess()
				b.Logf("%d leaves: %s, %d rules", n, time.Since(start), len(g.accepted))
			}
		})
	}
}

// TestRepeats: the same input gives the same draft.
func TestRepeats(t *testing.T) {
	test := kinds["a list with another name"]
	crd := widgets(t, test.v1, test.v2)
	var first string
	for range 5 {
		var out strings.Builder
		expect.NoError(t, make2(t, Input{CRD: crd, Convert: engine(t, crd, rulesOf(t, append([]string{
			`default: {from: '.spec.servers[*].zone', value: x}`, `drop: {to: '.spec.serverEndpoints[*].zone'}`}, test.rules[0])...))}).WriteText(&out))
		if first == "" {
			first = out.String()
		}
		if diff := cmp.Diff(first, out.String()); diff != "" {
			t.Fatalf("the draft differs:\n%s", diff)
		}
	}
}
