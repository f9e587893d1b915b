// Copyright The conversion-operator Authors.
// SPDX-License-Identifier: Apache-2.0

package soak

import (
	"cmp"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"maps"
	"net"
	"path"
	"slices"
	"strconv"
	"strings"
	"time"

	corev1 "k8s.io/api/core/v1"
	apiextensionsv1 "k8s.io/apiextensions-apiserver/pkg/apis/apiextensions/v1"
	apimeta "k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/conversion-operator/conversion-operator/api/v1alpha1"
	"github.com/conversion-operator/conversion-operator/internal/engine/conversion"
	"github.com/conversion-operator/conversion-operator/internal/migration/contract"
	"github.com/conversion-operator/conversion-operator/internal/operator/crds"
	"github.com/conversion-operator/conversion-operator/internal/operator/plan/names"
	"github.com/conversion-operator/conversion-operator/internal/operator/plan/observed"
	"github.com/conversion-operator/conversion-operator/internal/operator/plan/workload"
	"github.com/conversion-operator/conversion-operator/internal/test/scenarios"
	"github.com/conversion-operator/conversion-operator/internal/webhook/probe"
)

const (
	// system is the operator's namespace.
	system = "conversion-system"
	// podTimeout bounds requests to a pod that hangs.
	podTimeout = 5 * time.Second
)

// Observation is one observation of a subject, and the expected state of it and of the cluster. An object that does
// not exist is empty.
type Observation struct {
	Time    time.Time
	Subject *Subject
	State   State
	// CRD and Policy are read first, and After, the CRD, is read last.
	CRD, After apiextensionsv1.CustomResourceDefinition
	Policy     v1alpha1.ConversionPolicy
	// Fleet is the fleet that the policy uses, if any.
	Fleet v1alpha1.ConverterFleet
	// Children are the objects that the operator created for the subject, Records are those of migrations.
	Children []unstructured.Unstructured
	Records  []contract.Record
	// Rulesets are the hashes of the policy's stored rulesets, by the instance label of the ConfigMap.
	Rulesets map[string][]string
	Stored   map[string]Stored
	// Pruned is the etcd revision at which another client pruned status.storedVersions; 0 if all objects
	// are stored at listed versions.
	Pruned int64
	// Reads are the specs by version and name, and Refused the errors by version.
	Reads   map[string]map[string]any
	Refused map[string]error
	Pods    []pod
}

// Stored is an object in etcd: the version of its bytes, and the revision of their last write.
type Stored struct {
	Version     string
	Revision    int64
	Annotations map[string]string
}

// pod is a converter pod, as API servers see it that connect to it: what it reports if a connection verifies its
// certificate, and the error otherwise.
type pod struct {
	Name  string
	Ready bool
	probe.Result
	Refused error
}

// storage returns the storage version of the CRD, if there is one.
func (now Observation) storage() string { return crds.StorageVersion(&now.CRD) }

// has reports whether the CRD has a version.
func (now Observation) has(version string) bool {
	return (&Subject{CRD: &now.CRD}).version(version) != nil
}

// sameCRD reports whether both observations have the same CRD.
func (now Observation) sameCRD(before Observation) bool {
	return now.CRD.UID != "" && now.CRD.UID == before.CRD.UID
}

// condition returns a condition of the policy; the zero value if there is none.
func (now Observation) condition(name string) metav1.Condition {
	return *cmp.Or(apimeta.FindStatusCondition(now.Policy.Status.Conditions, name), &metav1.Condition{})
}

// ofCRD reports whether the status of the policy is of the CRD, and current whether it is of its spec too.
func (now Observation) ofCRD() bool {
	is := now.Policy.Status.CRD
	return is != nil && is.UID == now.CRD.UID && is.Generation == now.CRD.Generation
}

func (now Observation) current() bool {
	return now.ofCRD() && now.Policy.Status.ObservedGeneration == now.Policy.Generation
}

// unlisted returns the objects that are stored at a version that status.storedVersions lists
// neither before nor after the read of etcd.
func (now Observation) unlisted() map[string]Stored {
	all, listed := maps.Clone(now.Stored), slices.Concat(now.CRD.Status.StoredVersions, now.After.Status.StoredVersions)
	maps.DeleteFunc(all, func(_ string, is Stored) bool { return slices.Contains(listed, is.Version) })
	return all
}

// StillPruned returns Pruned until no object is stored at a pruned version: then, prunings by the operator
// need evidence again.
func (now Observation) StillPruned() int64 {
	if len(now.unlisted()) == 0 {
		return 0
	}
	return now.Pruned
}

// namedBy returns the Service of the operator that a CRD converts through, and the hash of the
// ruleset; empty if there is none.
func namedBy(crd *apiextensionsv1.CustomResourceDefinition) (service, hash string) {
	is := observed.WebhookService(crd)
	if is == nil || is.Path == nil || is.Name != names.Child(crd.Name) && names.FleetOf(is.Name) == "" {
		return "", ""
	}
	return is.Name, path.Base(*is.Path)
}

// observer makes an observation. After a failed request, it sends no other.
type observer struct {
	*Observation
	client client.Reader
	err    error
}

// observe observes all subjects. An error means that a request failed.
func (p *player) observe(ctx context.Context, s Step) (map[string]Observation, error) {
	all := map[string]Observation{}
	for name, subject := range sorted(s.After.Subjects) {
		o := &observer{&Observation{Time: time.Now(), Subject: subject, State: s.After, Pruned: p.pruned[name]}, p.cluster, nil}
		// The policy is read before the bytes that its status describes.
		o.get(ctx, crdOf(name), &o.CRD)
		o.get(ctx, crdOf(name), &o.Policy)
		o.observeChildren(ctx)
		if subject.Fleet != "" {
			o.get(ctx, subject.Fleet, &o.Fleet)
		}
		o.observeBytes(ctx)
		o.get(ctx, crdOf(name), &o.After)
		o.observeReads(ctx)
		o.observePods(ctx)
		if o.err != nil {
			return nil, fmt.Errorf("observe %s: %w", name, o.err)
		}
		all[name] = *o.Observation
	}
	return all, nil
}

// get reads an object, which stays empty if it does not exist.
func (o *observer) get(ctx context.Context, name string, object client.Object) {
	if o.err == nil {
		o.err = client.IgnoreNotFound(o.client.Get(ctx, client.ObjectKey{Name: name}, object))
	}
}

func (o *observer) list(ctx context.Context, list client.ObjectList, options ...client.ListOption) {
	if o.err == nil {
		o.err = o.client.List(ctx, list, options...)
	}
}

// childKinds are the kinds that the operator creates, and those that Kubernetes creates for them.
var childKinds = []string{"Job.v1.batch", "Deployment.v1.apps", "PodDisruptionBudget.v1.policy",
	"Service.v1.", "ConfigMap.v1.", "Secret.v1.", "ServiceAccount.v1.", "Pod.v1.",
	"Role.v1.rbac.authorization.k8s.io", "RoleBinding.v1.rbac.authorization.k8s.io",
	"ClusterRole.v1.rbac.authorization.k8s.io", "ClusterRoleBinding.v1.rbac.authorization.k8s.io",
	"FlowSchema.v1.flowcontrol.apiserver.k8s.io", "ValidatingWebhookConfiguration.v1.admissionregistration.k8s.io"}

// observeChildren lists the objects of a subject in the whole cluster, and reads the records of migrations, and which
// rulesets of the policy are stored, also in the ConfigMaps of fleets.
func (o *observer) observeChildren(ctx context.Context) {
	own := instanceOf(o.Subject.Name)
	o.Rulesets = map[string][]string{}
	for _, name := range childKinds {
		list := &unstructured.UnstructuredList{}
		kind, _ := schema.ParseKindArg(name)
		list.SetGroupVersionKind(*kind)
		o.list(ctx, list, client.HasLabels{names.InstanceLabel})
		for _, item := range list.Items {
			instance := item.GetLabels()[names.InstanceLabel]
			rulesets, _, _ := unstructured.NestedMap(item.Object, "binaryData")
			for key := range sorted(rulesets) {
				if hash, is := conversion.StoredHash(key); is && key == conversion.StoredName(own, hash) {
					o.Rulesets[instance] = append(o.Rulesets[instance], hash)
				}
			}
			if instance != own {
				continue
			}
			o.Children = append(o.Children, item)
			if text, found, _ := unstructured.NestedString(item.Object, "data", contract.RecordKey); found {
				record, err := contract.ParseRecord([]byte(text))
				o.Records, o.err = append(o.Records, record), errors.Join(o.err, err)
			}
		}
	}
}

// observeBytes reads etcd.
func (o *observer) observeBytes(ctx context.Context) {
	if o.err != nil {
		return
	}
	stored, err := scenarios.ReadStored(ctx, groupOf(o.Subject.Name), "crontabs")
	if o.err = err; err != nil {
		return
	}
	o.Stored = map[string]Stored{}
	for key, text := range stored.Bytes {
		object := &metav1.PartialObjectMetadata{}
		o.err = errors.Join(o.err, json.Unmarshal([]byte(text), object))
		_, version, _ := strings.Cut(object.APIVersion, "/")
		o.Stored[object.Name] = Stored{version, stored.Revisions[key], object.Annotations}
	}
}

// observeReads lists all objects in every served version.
func (o *observer) observeReads(ctx context.Context) {
	o.Reads, o.Refused = map[string]map[string]any{}, map[string]error{}
	for _, version := range o.Subject.served() {
		_, list := object{o.Subject.Name, "", version}.empty()
		o.Refused[version], o.Reads[version] = o.client.List(ctx, list), map[string]any{}
		for _, item := range list.Items {
			o.Reads[version][item.GetName()] = item.Object["spec"]
		}
	}
}

// observePods observes the pods that the CRD names, or those that the policy wants.
func (o *observer) observePods(ctx context.Context) {
	service, _ := namedBy(&o.CRD)
	instance, all := cmp.Or(service, o.Subject.instance()), &corev1.PodList{}
	o.list(ctx, all, client.InNamespace(system), client.MatchingLabels{names.ComponentLabel: names.ConverterComponent, names.InstanceLabel: instance})
	for _, each := range all.Items {
		is := pod{Name: each.Name, Ready: isReady(each)}
		if service != "" && is.Ready {
			o.connect(ctx, &is, probe.Target{Address: net.JoinHostPort(each.Status.PodIP, strconv.Itoa(workload.ContainerPort)), ServerName: names.ServiceName(instance, system)})
		}
		o.Pods = append(o.Pods, is)
	}
}

// connect connects to a converter pod as API servers do, with caBundle, and if that has changed meanwhile with the
// new one.
func (o *observer) connect(ctx context.Context, is *pod, target probe.Target) {
	ctx, cancel := context.WithTimeout(ctx, podTimeout)
	defer cancel()
	crd := &o.CRD
	for range 2 {
		target.CABundle = observed.Cluster{CRD: crd}.ActiveCABundle()
		if is.Result, is.Refused = probe.Pod(ctx, target); !untrusted(is.Refused) {
			return
		}
		crd = &apiextensionsv1.CustomResourceDefinition{}
		o.get(ctx, crdOf(o.Subject.Name), crd)
	}
}

// untrusted reports whether a connection failed because caBundle does not verify the certificate.
func untrusted(err error) bool {
	refused, known := errors.AsType[*probe.Error](err)
	return known && refused.Reason == probe.ReasonTLSVerificationFailed
}

func isReady(pod corev1.Pod) bool {
	return pod.DeletionTimestamp == nil && slices.ContainsFunc(pod.Status.Conditions, func(condition corev1.PodCondition) bool {
		return condition.Type == corev1.PodReady && condition.Status == corev1.ConditionTrue
	})
}
