// Copyright The conversion-operator Authors.
// SPDX-License-Identifier: Apache-2.0

package contract

import (
	"encoding/json"
	"errors"
	"fmt"
	"slices"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/apimachinery/pkg/util/validation/field"
	strictjson "sigs.k8s.io/json"

	"github.com/conversion-operator/conversion-operator/api/v1alpha1"
)

const (
	// Command is the subcommand that migration pods run.
	Command = "migrate"
	// SpecFlag is the name of its flag that takes the Spec as JSON.
	SpecFlag = "spec"

	// SpecFormat changes when a pod would misread the Spec. A pod refuses a Spec of
	// another format, and one with a field that it does not know.
	SpecFormat = 1
)

// Values of the Spec that no policy sets.
const (
	// DefaultPreflight is enough to show a webhook or a schema that refuses every object.
	DefaultPreflight = 20
	// DefaultPageSize is the page size of kubectl and of most controllers.
	DefaultPageSize = 500
	// DefaultConcurrency is that of the API, for policies that were stored before it.
	DefaultConcurrency = 32
)

// Spec is everything that the pods of a migration Job are told.
type Spec struct {
	// FormatVersion is SpecFormat.
	FormatVersion int `json:"formatVersion"`
	// Run identifies the run, and with it the record that it may continue.
	Run string `json:"run"`
	// Pin is the state of the CustomResourceDefinition that the run is made for.
	Pin Pin `json:"customResourceDefinition"`
	// Resource to migrate; its version is the storage version.
	Resource metav1.GroupVersionResource `json:"resource"`

	// Namespace of the ConfigMaps below.
	Namespace string `json:"namespace"`
	// RecordConfigMap keeps the Record of the run. It must exist.
	RecordConfigMap string `json:"recordConfigMap"`
	// RetryConfigMap keeps the Record of an earlier run, of which only the failed objects
	// are migrated; every object is if the CustomResourceDefinition changed since.
	// Empty for none.
	RetryConfigMap string `json:"retryConfigMap,omitempty"`
	// RulesetConfigMap has the compiled rules by which objects convert: the run counts
	// the values that annotations preserve, and restores those that have a field now.
	// Without it, it does neither.
	RulesetConfigMap string `json:"rulesetConfigMap,omitempty"`

	// PropagationDelay is how long API servers may still write at the old version.
	PropagationDelay metav1.Duration `json:"propagationDelay"`
	// Preflight is the number of objects that are tried without writing before the
	// first write; 0 for none.
	Preflight int `json:"preflight"`
	// PageSize is the number of objects listed at once, at least 1. Memory grows with
	// it, and not with the number of objects.
	PageSize int64 `json:"pageSize"`
	// Concurrency is the most objects in flight, at least 1. The run adapts to the API
	// server below it.
	Concurrency int `json:"concurrency"`
	// Pace says whether other clients or the run count more.
	Pace v1alpha1.MigrationPace `json:"pace"`
	// MaxWritesPerSecond bounds the patches that are sent, refused ones included; 0 is
	// no bound.
	MaxWritesPerSecond int `json:"maxWritesPerSecond,omitempty"`
	// Verify is how many objects are patched a second time at the end.
	Verify v1alpha1.MigrationVerification `json:"verify"`
	// Fallback are the other paths that may be tried, in this order, for an object that
	// is refused at the storage version.
	Fallback []v1alpha1.MigrationFallback `json:"fallback,omitempty"`
	// OldVersions are the other served versions, in the order in which
	// MigrationFallbackOldVersion tries them. Objects that cannot be listed at the
	// storage version are looked for there, too.
	OldVersions []string `json:"oldVersions,omitempty"`

	// TracingEndpoint is where traces are sent to; empty for nowhere.
	TracingEndpoint string `json:"tracingEndpoint,omitempty"`
}

// Pin is the one state of a CustomResourceDefinition that a run is made for. Every
// change of its spec gives it another generation: a conversion that is dropped or
// moved, another storage version, another schema. Rewriting objects under such a
// change may lose data, so the run ends instead.
type Pin struct {
	// Name of the CustomResourceDefinition.
	Name string `json:"name"`
	// UID tells it from one of the same name that was created later.
	UID types.UID `json:"uid"`
	// Generation of its spec, at least 1.
	Generation int64 `json:"generation"`
}

// GroupVersionResource is the resource at its storage version.
func (s *Spec) GroupVersionResource() schema.GroupVersionResource {
	return schema.GroupVersionResource(s.Resource)
}

// GroupResource is the resource at any version.
func (s *Spec) GroupResource() schema.GroupResource { return s.GroupVersionResource().GroupResource() }

// Args are the arguments of a migration pod's container. Equal specs give equal
// arguments.
func (s *Spec) Args() []string {
	text, _ := json.Marshal(s) // only texts, numbers, and lists of texts: it cannot fail
	return []string{Command, "--" + SpecFlag + "=" + string(text)}
}

// ParseSpec reads the value of SpecFlag. The error names each field that is unknown,
// given twice, missing or not valid.
func ParseSpec(text string) (Spec, error) {
	var head struct {
		FormatVersion int `json:"formatVersion"`
	}
	if err := json.Unmarshal([]byte(text), &head); err != nil {
		return Spec{}, fmt.Errorf("the run specification is not readable: %w", err)
	}
	if head.FormatVersion != SpecFormat {
		return Spec{}, fmt.Errorf("formatVersion of the run specification is %d, this version of conversion-operator reads %d", head.FormatVersion, SpecFormat)
	}
	var s Spec
	unknown, err := strictjson.UnmarshalStrict([]byte(text), &s)
	if err := errors.Join(append(unknown, err)...); err != nil {
		return Spec{}, fmt.Errorf("the run specification is not readable: %w", err)
	}
	if err := s.validate().ToAggregate(); err != nil {
		return Spec{}, fmt.Errorf("the run specification is not valid: %w", err)
	}
	return s, nil
}

func (s *Spec) validate() field.ErrorList {
	var errs field.ErrorList
	resource, pin := field.NewPath("resource"), field.NewPath("customResourceDefinition")
	for _, required := range []struct {
		path  *field.Path
		value string
	}{
		{field.NewPath("run"), s.Run},
		{pin.Child("name"), s.Pin.Name},
		{pin.Child("uid"), string(s.Pin.UID)},
		{resource.Child("group"), s.Resource.Group},
		{resource.Child("version"), s.Resource.Version},
		{resource.Child("resource"), s.Resource.Resource},
		{field.NewPath("namespace"), s.Namespace},
		{field.NewPath("recordConfigMap"), s.RecordConfigMap},
	} {
		if required.value == "" {
			errs = append(errs, field.Required(required.path, "must not be empty"))
		}
	}
	for _, number := range []struct {
		path         *field.Path
		value, least int64
	}{
		{pin.Child("generation"), s.Pin.Generation, 1},
		{field.NewPath("preflight"), int64(s.Preflight), 0},
		{field.NewPath("pageSize"), s.PageSize, 1},
		{field.NewPath("concurrency"), int64(s.Concurrency), 1},
		{field.NewPath("maxWritesPerSecond"), int64(s.MaxWritesPerSecond), 0},
	} {
		if number.value < number.least {
			errs = append(errs, field.Invalid(number.path, number.value, fmt.Sprintf("must be at least %d", number.least)))
		}
	}
	if s.PropagationDelay.Duration < 0 {
		errs = append(errs, field.Invalid(field.NewPath("propagationDelay"), s.PropagationDelay.Duration.String(), "must not be negative"))
	}
	return append(errs, s.validateChoices()...)
}

func (s *Spec) validateChoices() field.ErrorList {
	errs := oneOf(field.NewPath("pace"), s.Pace, v1alpha1.MigrationGentle, v1alpha1.MigrationFast)
	errs = append(errs, oneOf(field.NewPath("verify"), s.Verify,
		v1alpha1.MigrationVerifyNone, v1alpha1.MigrationVerifySample, v1alpha1.MigrationVerifyFull)...)
	for i, fallback := range s.Fallback {
		path := field.NewPath("fallback").Index(i)
		errs = append(errs, oneOf(path, fallback, v1alpha1.MigrationFallbackStatus, v1alpha1.MigrationFallbackOldVersion)...)
		if fallback == v1alpha1.MigrationFallbackOldVersion && len(s.OldVersions) == 0 {
			errs = append(errs, field.Invalid(path, fallback, "needs oldVersions"))
		}
	}
	return errs
}

func oneOf[T ~string](path *field.Path, value T, allowed ...T) field.ErrorList {
	if slices.Contains(allowed, value) {
		return nil
	}
	return field.ErrorList{field.NotSupported(path, value, allowed)}
}
