// Copyright The conversion-operator Authors.
// SPDX-License-Identifier: Apache-2.0

package step

import (
	"fmt"
	"reflect"
	"regexp"
	"strings"

	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime"
)

// texts say what each step does, with {fields} of the step.
var texts = map[string]string{
	"AddFinalizer":        "add the finalizer of the policy",
	"AddStorageVersion":   "have the storage version added to status.storedVersions of CustomResourceDefinition {Pin}",
	"Apply":               "apply {Object}",
	"AwaitRuleset":        "have the pods of ConverterFleet {Fleet} load the ruleset",
	"ClearManagedFields":  "remove {Version} from metadata.managedFields of all objects",
	"CountWrites":         "count the objects that clients wrote without a conversion",
	"Create":              "create {Object}",
	"CreateFleet":         "create ConverterFleet {Name}",
	"DeleteAdmission":     "delete ValidatingWebhookConfiguration {Name}",
	"DeleteChildren":      "delete everything that the operator created for {Instance}",
	"DeleteDeployment":    "delete Deployment {Name}",
	"DeleteJob":           "delete Job {Name}",
	"DeleteRights":        "withdraw the rights {Name}",
	"DeleteRulesets":      "delete ConfigMap {Name}",
	"DeleteRun":           "delete the migration {Name}",
	"DeleteSecret":        "delete Secret {Name}",
	"DeleteService":       "delete Service {Name}",
	"EditVersions":        "change spec.versions of CustomResourceDefinition {Pin}: {Note}",
	"EvictPod":            "evict converter pod {Name}",
	"FindDependents":      "search the cluster for objects that name {Versions}",
	"IssueAuthority":      "issue a certificate authority in Secret {SecretName}",
	"ProbeAPIServer":      "have an API server call the converter",
	"PromoteAuthority":    "use the next certificate authority in Secret {SecretName}",
	"PruneStoredVersions": "prune status.storedVersions of CustomResourceDefinition {Pin}",
	"ReadRequests":        "read from the metrics of API servers which versions clients request",
	"RecordDrift":         "record in the status: {Note}",
	"RefreshPod":          "have converter pods read what they mount",
	"RemoveFinalizer":     "remove the finalizer of the policy",
	"RestoreCRD":          "restore the conversion of CustomResourceDefinition {Pin}",
	"StoreRulesets":       "store the rulesets of the policy in ConverterFleet {Fleet}",
	"SuspendRun":          "set suspend to {Suspend} in Job {Name}",
	"SwitchCRD":           "switch CustomResourceDefinition {Pin} to the webhook",
	"TakeSamples":         "convert up to {Most} live objects through the converter pods and back",
	"Warn":                "emit a warning: {Note}",
	"WriteCertificate":    "write the serving certificate in Secret {SecretName}",
}

var field = regexp.MustCompile(`\{\w+\}`)

// Describe says what a step does, as an instruction. It is the text of errors, of the log and of forecasts.
func Describe(s Step) string {
	value := reflect.ValueOf(s)
	text := field.ReplaceAllStringFunc(texts[value.Type().Name()], func(name string) string {
		switch is := value.FieldByName(strings.Trim(name, "{}")).Interface().(type) {
		case Pin:
			return is.Name
		case []string:
			return strings.Join(is, ", ")
		case runtime.ApplyConfiguration:
			return Name(is)
		default:
			return fmt.Sprint(is)
		}
	})
	if clears, is := s.(ClearManagedFields); is && len(clears.Discard) > 0 {
		text += ", and discard their preserved " + strings.Join(clears.Discard, ", ")
	}
	return text
}

// Name returns the kind and the name of an object.
func Name(object runtime.ApplyConfiguration) string {
	content, err := runtime.DefaultUnstructuredConverter.ToUnstructured(object)
	if err != nil {
		return fmt.Sprintf("%T", object)
	}
	named := unstructured.Unstructured{Object: content}
	return named.GetKind() + " " + named.GetName()
}
