// Copyright The conversion-operator Authors.
// SPDX-License-Identifier: Apache-2.0

package step

import (
	"fmt"
	"strings"

	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime"
)

// Describe says what a step does, as an instruction. It is the text of errors, of the log and of forecasts.
func Describe(s Step) string {
	switch s := s.(type) {
	case Apply:
		return "apply " + Name(s.Object)
	case Create:
		return "create " + Name(s.Object)
	case SwitchCRD:
		return "switch CustomResourceDefinition " + s.Pin.Name + " to the webhook"
	case RestoreCRD:
		return "restore the conversion of CustomResourceDefinition " + s.Pin.Name
	case EditVersions:
		return "change spec.versions of CustomResourceDefinition " + s.Pin.Name + ": " + s.Note
	case AddStorageVersion:
		return "have the storage version added to status.storedVersions of CustomResourceDefinition " + s.Pin.Name
	case PruneStoredVersions:
		return "prune status.storedVersions of CustomResourceDefinition " + s.Pin.Name
	case TakeSamples:
		return fmt.Sprintf("convert up to %d live objects through the converter pods and back", s.Most)
	case ProbeAPIServer:
		return "have an API server call the converter"
	case CountWrites:
		return "count the objects that clients wrote without a conversion"
	case ReadRequests:
		return "read from the metrics of API servers which versions clients request"
	case FindDependents:
		return "search the cluster for objects that name " + strings.Join(s.Versions, ", ")
	case ClearManagedFields:
		if len(s.Discard) > 0 {
			return "remove " + s.Version + " from metadata.managedFields of all objects, and discard their preserved " + strings.Join(s.Discard, ", ")
		}
		return "remove " + s.Version + " from metadata.managedFields of all objects"
	}
	return describeOwn(s)
}

// describeOwn describes the steps on what belongs to the operator.
func describeOwn(s Step) string {
	switch s := s.(type) {
	case AddFinalizer:
		return "add the finalizer of the policy"
	case RemoveFinalizer:
		return "remove the finalizer of the policy"
	case IssueAuthority:
		return "issue a certificate authority in Secret " + s.SecretName
	case PromoteAuthority:
		return "use the next certificate authority in Secret " + s.SecretName
	case WriteCertificate:
		return "write the serving certificate in Secret " + s.SecretName
	case StoreRulesets:
		return "store the rulesets of the policy in ConverterFleet " + s.Fleet
	case AwaitRuleset:
		return "have the pods of ConverterFleet " + s.Fleet + " load the ruleset"
	case CreateFleet:
		return "create ConverterFleet " + s.Name
	case RefreshPod:
		return "have converter pods read what they mount"
	case EvictPod:
		return "evict converter pod " + s.Name
	case RecordDrift:
		return "record in the status: " + s.Note
	case Warn:
		return "emit a warning: " + s.Note
	case SuspendRun:
		if s.Suspend {
			return "suspend Job " + s.Name
		}
		return "resume Job " + s.Name
	case DeleteRun:
		return "delete the migration " + s.Name
	case DeleteJob:
		return "delete Job " + s.Name
	}
	return describeDelete(s)
}

func describeDelete(s Step) string {
	switch s := s.(type) {
	case DeleteRights:
		return "withdraw the rights " + s.Name
	case DeleteRulesets:
		return "delete ConfigMap " + s.Name
	case DeleteDeployment:
		return "delete Deployment " + s.Name
	case DeleteSecret:
		return "delete Secret " + s.Name
	case DeleteService:
		return "delete Service " + s.Name
	case DeleteAdmission:
		return "delete ValidatingWebhookConfiguration " + s.Name
	case DeleteChildren:
		return "delete everything that the operator created for the policy"
	}
	return fmt.Sprintf("%T", s)
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
