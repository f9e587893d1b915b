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
	// Command is the subcommand that migration pods run. Users run another one, migrate.
	Command = "run-migration"
	// SpecFlag is the name of its flag that takes the Spec as JSON.
	SpecFlag = "spec"

	// SpecFormat changes when a pod would misread the Spec. A pod refuses a Spec of
	// another format, and one with a field that it does not know.
	SpecFormat = 1
)

// Values of the Spec that are not in a policy.
const (
	// DefaultPreflight is enough to detect a webhook or a schema that refuses every object.
	DefaultPreflight = 20
	// DefaultPageSize is the page size of kubectl and of most controllers.
	DefaultPageSize = 500
	// DefaultConcurrency is the limit of a policy that sets none.
	DefaultConcurrency = 32
)

// Spec is the run specification: all input of the pods of a migration Job.
type Spec struct {
	// FormatVersion is SpecFormat.
	FormatVersion int `json:"formatVersion"`
	// Run identifies the run and its record.
	Run string `json:"run"`
	// Pin is the state of the CustomResourceDefinition that the run is for, or of a resource without
	// one.
	Pin Pin `json:"customResourceDefinition"`
	// Resource to migrate; its version is the storage version.
	Resource metav1.GroupVersionResource `json:"resource"`

	// Namespace of the ConfigMaps below.
	Namespace string `json:"namespace"`
	// RecordConfigMap stores the Record of the run. It must exist.
	RecordConfigMap string `json:"recordConfigMap"`
	// RetryConfigMap stores the Record of an earlier run, of which this run migrates only the
	// failed objects. If the CustomResourceDefinition has changed since, the run migrates every
	// object. Empty for none.
	RetryConfigMap string `json:"retryConfigMap,omitempty"`
	// Ruleset is the hash of the ruleset by which objects convert, and RulesetConfigMap has it. With
	// it, the run counts the values that annotations preserve, and restores those that have a field
	// now.
	Ruleset          string `json:"ruleset,omitempty"`
	RulesetConfigMap string `json:"rulesetConfigMap,omitempty"`

	// PropagationDelay is how long API servers may still write at the old version.
	PropagationDelay metav1.Duration `json:"propagationDelay"`
	// Preflight is the number of objects that are tried as a dry run before the first write; 0 for
	// none.
	Preflight int `json:"preflight"`
	// PageSize is the number of objects per list request, at least 1. Memory use grows with it, not
	// with the number of objects.
	PageSize int64 `json:"pageSize"`
	// Concurrency is the maximum number of objects in flight, at least 1. The run adapts to the API
	// server below it.
	Concurrency int `json:"concurrency"`
	// Pace says whether other clients or the run have priority.
	Pace v1alpha1.MigrationPace `json:"pace"`
	// MaxWritesPerSecond bounds the patches that are sent, including refused ones; 0 means no
	// limit.
	MaxWritesPerSecond int `json:"maxWritesPerSecond,omitempty"`
	// Verify selects the objects that are patched again at the end. If it is empty, the run decides by
	// the kind of its barrier.
	Verify v1alpha1.MigrationVerification `json:"verify,omitempty"`
	// Fallback are the paths to try, in this order, for an object that is refused at the storage
	// version.
	Fallback []v1alpha1.MigrationFallback `json:"fallback,omitempty"`
	// OldVersions are the other served versions, in the order of MigrationFallbackOldVersion.
	// Objects that cannot be listed at the storage version are also read there.
	OldVersions []string `json:"oldVersions,omitempty"`

	// TracingEndpoint receives the traces; empty disables tracing.
	TracingEndpoint string `json:"tracingEndpoint,omitempty"`
}

// Pin is the state of a CustomResourceDefinition that a run is for. Every change of its spec
// increments the generation: a conversion that is removed or changed, another storage version,
// another schema. Rewriting objects after such a change may lose data, so the run is aborted
// instead.
//
// A resource without a CustomResourceDefinition, such as Secrets, is pinned to the hash that
// discovery shows for its storage version.
type Pin struct {
	// Name of the CustomResourceDefinition, or of the resource without one, as resource.group.
	Name string `json:"name"`
	// UID distinguishes it from a later one of the same name.
	UID types.UID `json:"uid,omitempty"`
	// Generation of its spec, at least 1.
	Generation int64 `json:"generation,omitempty"`
	// StorageVersionHash is the hash in discovery. It is set instead of UID and Generation.
	StorageVersionHash string `json:"storageVersionHash,omitempty"`
}

// IsBuiltIn reports whether the resource has no CustomResourceDefinition.
func (p Pin) IsBuiltIn() bool { return p.StorageVersionHash != "" }

// String names what is pinned, for messages.
func (p Pin) String() string {
	if p.IsBuiltIn() {
		return "resource " + p.Name
	}
	return "CustomResourceDefinition " + p.Name
}

// GroupVersionResource is the resource at its storage version.
func (s *Spec) GroupVersionResource() schema.GroupVersionResource {
	return schema.GroupVersionResource(s.Resource)
}

// GroupResource is the resource at any version.
func (s *Spec) GroupResource() schema.GroupResource { return s.GroupVersionResource().GroupResource() }

// Args returns the arguments of the container of a migration pod. Equal specs give equal arguments.
func (s *Spec) Args() []string {
	text, _ := json.Marshal(s) // cannot fail: only strings, numbers, and lists of strings
	return []string{Command, "--" + SpecFlag + "=" + string(text)}
}

// ParseSpec parses the value of SpecFlag. The error names each field that is unknown, duplicate,
// missing or invalid.
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
		{resource.Child("version"), s.Resource.Version},
		{resource.Child("resource"), s.Resource.Resource},
		{field.NewPath("namespace"), s.Namespace},
		{field.NewPath("recordConfigMap"), s.RecordConfigMap},
	} {
		if required.value == "" {
			errs = append(errs, field.Required(required.path, "must not be empty"))
		}
	}
	if !s.Pin.IsBuiltIn() {
		errs = append(errs, s.validateDefinition(pin, resource)...)
	}
	for _, number := range []struct {
		path         *field.Path
		value, least int64
	}{
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

// validateDefinition checks what only a resource with a CustomResourceDefinition has.
func (s *Spec) validateDefinition(pin, resource *field.Path) field.ErrorList {
	var errs field.ErrorList
	if s.Pin.UID == "" {
		errs = append(errs, field.Required(pin.Child("uid"), "must not be empty"))
	}
	if s.Resource.Group == "" {
		errs = append(errs, field.Required(resource.Child("group"), "must not be empty"))
	}
	if s.Pin.Generation < 1 {
		errs = append(errs, field.Invalid(pin.Child("generation"), s.Pin.Generation, "must be at least 1"))
	}
	return errs
}

func (s *Spec) validateChoices() field.ErrorList {
	errs := oneOf(field.NewPath("pace"), s.Pace, v1alpha1.MigrationGentle, v1alpha1.MigrationFast)
	if s.Verify != "" {
		errs = append(errs, oneOf(field.NewPath("verify"), s.Verify,
			v1alpha1.MigrationVerifyNone, v1alpha1.MigrationVerifySample, v1alpha1.MigrationVerifyFull)...)
	}
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
