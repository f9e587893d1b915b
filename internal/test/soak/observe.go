// Copyright The conversion-operator Authors.
// SPDX-License-Identifier: Apache-2.0

package soak

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"net"
	"path"
	"slices"
	"strconv"
	"strings"
	"time"

	"golang.org/x/sync/errgroup"
	corev1 "k8s.io/api/core/v1"
	apiextensionsv1 "k8s.io/apiextensions-apiserver/pkg/apis/apiextensions/v1"
	apimeta "k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime/schema"
	utiljson "k8s.io/apimachinery/pkg/util/json"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/conversion-operator/conversion-operator/api/v1alpha1"
	"github.com/conversion-operator/conversion-operator/internal/engine/conversion"
	"github.com/conversion-operator/conversion-operator/internal/migration/contract"
	"github.com/conversion-operator/conversion-operator/internal/operator/crds"
	"github.com/conversion-operator/conversion-operator/internal/operator/pki"
	"github.com/conversion-operator/conversion-operator/internal/operator/plan/names"
	"github.com/conversion-operator/conversion-operator/internal/operator/plan/workload"
	"github.com/conversion-operator/conversion-operator/internal/test/scenarios"
	"github.com/conversion-operator/conversion-operator/internal/webhook/probe"
)

// Observation is one observation of a subject, and its expected state.
type Observation struct {
	Time    time.Time
	Subject Subject
	// CRD and Policy are read first, and nil if they do not exist. ListedAfter is
	// status.storedVersions, and Conversion spec.conversion, read last.
	CRD         *apiextensionsv1.CustomResourceDefinition
	Policy      *v1alpha1.ConversionPolicy
	ListedAfter []string
	Conversion  *apiextensionsv1.CustomResourceConversion
	Records     []contract.Record
	Children    []child
	Stored      map[string]Stored
	// Pruned is what another client removed from status.storedVersions while objects were stored at
	// those versions.
	Pruned Pruning
	// Reads are by version and name.
	Reads map[string]map[string]read
	Pods  []podObservation
	// Rulesets are the hashes of the policy's stored rulesets, by the instance label of the ConfigMap.
	Rulesets map[string][]string
	// Fleet is the fleet that the policy uses, if any, and Size the expected number of its pods.
	// Follow is set if no user of the fleet is suspended or abandoned.
	Fleet  *v1alpha1.ConverterFleet
	Size   int
	Follow bool
	// Mounted is the expiry of the certificate that pods mount; zero without one.
	Mounted time.Time
}

// Stored is an object in etcd: the version of its bytes, the revision of their last write, and the values
// in annotations by version and path.
type Stored struct {
	Version   string
	Revision  int64
	Preserved map[string]map[string]any
}

// read is the result of a client's read.
type read struct {
	spec   map[string]any
	labels map[string]string
	err    string
}

// child is an object that the operator created for a subject.
type child struct {
	Kind, Name string
	// Run is the migration of the object, if any.
	Run string
	// Active is true for a Job with active pods.
	Active bool
}

func (c child) String() string { return c.Kind + " " + c.Name }

// podObservation is a converter pod, as API servers see it that connect to it.
type podObservation struct {
	Name  string
	Ready bool
	// NotAfter is the end of its certificate, and Rulesets are the hashes of the rulesets that it serves,
	// if a connection verifies its certificate. Refused is the error otherwise.
	NotAfter time.Time
	Rulesets []string
	Refused  error
}

// Pruning records what another client removed from status.storedVersions: the versions, and the
// etcd revision of that change.
type Pruning struct {
	Revision int64
	Versions []string
}

// storage returns the storage version of the CRD, if there is one.
func (now Observation) storage() string {
	if now.CRD == nil {
		return ""
	}
	return crds.StorageVersion(now.CRD)
}

// sameCRD reports whether both observations have the same CRD.
func (now Observation) sameCRD(before Observation) bool {
	return now.CRD != nil && before.CRD != nil && now.CRD.UID == before.CRD.UID
}

// condition returns a condition of the policy; the zero value if there is none.
func (now Observation) condition(name string) metav1.Condition {
	if now.Policy != nil {
		if found := apimeta.FindStatusCondition(now.Policy.Status.Conditions, name); found != nil {
			return *found
		}
	}
	return metav1.Condition{}
}

// current reports whether the status of the policy is of its spec and of the CRD.
func (now Observation) current() bool {
	return now.Policy != nil && now.CRD != nil && now.Policy.Status.ObservedGeneration == now.Policy.Generation && now.ofCRD()
}

// ofCRD reports whether the status of the policy is of the CRD.
func (now Observation) ofCRD() bool {
	status := now.Policy.Status.CRD
	return now.CRD != nil && status != nil && status.UID == now.CRD.UID && status.Generation == now.CRD.Generation
}

// unlisted returns the objects that are stored at a version that status.storedVersions lists
// neither before nor after the read of etcd.
func (now Observation) unlisted() []string {
	if now.CRD == nil {
		return nil
	}
	return slices.DeleteFunc(sortedKeys(now.Stored), func(name string) bool {
		version := now.Stored[name].Version
		return slices.Contains(now.CRD.Status.StoredVersions, version) || slices.Contains(now.ListedAfter, version)
	})
}

// prunedByOthers reports whether another client pruned a version since the observation before.
func (now Observation) prunedByOthers(before Observation, version string) bool {
	return now.Pruned.Revision != before.Pruned.Revision && slices.Contains(now.Pruned.Versions, version)
}

// webhookOf returns the conversion webhook of a CRD, or nil.
func webhookOf(crd *apiextensionsv1.CustomResourceDefinition) *apiextensionsv1.WebhookClientConfig {
	if crd == nil || crd.Spec.Conversion == nil || crd.Spec.Conversion.Webhook == nil {
		return nil
	}
	return crd.Spec.Conversion.Webhook.ClientConfig
}

// namedBy returns the Service of the operator that a CRD converts through, and the hash of the
// ruleset; empty if there is none.
func namedBy(crd *apiextensionsv1.CustomResourceDefinition) (service, hash string) {
	webhook := webhookOf(crd)
	if webhook == nil || webhook.Service == nil || webhook.Service.Path == nil {
		return "", ""
	}
	name := webhook.Service.Name
	if name != names.Child(crd.Name) && !slices.Contains(fleetNames, names.FleetOf(name)) {
		return "", ""
	}
	return name, path.Base(*webhook.Service.Path)
}

// preservedIn reads preserved values from annotations, by version and path. Values of this run are
// too short for compression.
func preservedIn(annotations map[string]string, crd string) (map[string]map[string]any, error) {
	all := map[string]map[string]any{}
	for _, version := range []string{joined, nested} {
		name := "conversion-operator.io/" + version + "." + crd
		text, found := annotations[name]
		if !found {
			continue
		}
		held := map[string]any{}
		err := utiljson.Unmarshal([]byte(text), &held)
		fields, has := held["fields"].(map[string]any)
		if err != nil || !has || len(held) != 2 || held["format"] != int64(2) {
			return nil, fmt.Errorf("the annotation %s is %s, which is none of format 2 with fields alone: %w", name, text, err)
		}
		all[version] = map[string]any{}
		for pointer, value := range fields {
			all[version][strings.ReplaceAll(pointer, "/", ".")] = value
		}
	}
	return all, nil
}

const (
	// system is the operator's namespace.
	system = "conversion-system"
	// podTimeout bounds requests to a pod that hangs.
	podTimeout = 5 * time.Second
)

// observe observes all subjects. An error means that a request failed.
func (p *player) observe(ctx context.Context, s Step) (map[string]Observation, error) {
	all := map[string]Observation{}
	for _, subject := range s.After {
		now := Observation{Time: time.Now(), Subject: subject, Pruned: p.pruned[subject.Name]}
		var err, policyErr error
		now.CRD, err = find(ctx, p, &apiextensionsv1.CustomResourceDefinition{ObjectMeta: metaOf(subject.Name)})
		// The policy is read before the bytes that its status describes.
		now.Policy, policyErr = find(ctx, p, &v1alpha1.ConversionPolicy{ObjectMeta: metaOf(subject.Name)})
		err = errors.Join(err, policyErr, p.observeChildren(ctx, &now), p.observeFleet(ctx, s, &now),
			p.observeBytes(ctx, &now), p.observeReads(ctx, &now), p.observePods(ctx, &now))
		if err != nil {
			return nil, fmt.Errorf("observe %s: %w", subject.Name, err)
		}
		all[subject.Name] = now
	}
	return all, nil
}

// find reads an object; it returns nil if that does not exist.
func find[T client.Object](ctx context.Context, p *player, object T) (T, error) {
	var none T
	if err := p.cluster.Get(ctx, client.ObjectKeyFromObject(object), object); err != nil {
		return none, client.IgnoreNotFound(err)
	}
	return object, nil
}

// childKinds are the kinds that the operator creates, and those that Kubernetes creates for them.
var childKinds = []string{"Job.v1.batch", "Deployment.v1.apps", "PodDisruptionBudget.v1.policy",
	"Service.v1.", "ConfigMap.v1.", "Secret.v1.", "ServiceAccount.v1.", "Pod.v1.",
	"Role.v1.rbac.authorization.k8s.io", "RoleBinding.v1.rbac.authorization.k8s.io",
	"ClusterRole.v1.rbac.authorization.k8s.io", "ClusterRoleBinding.v1.rbac.authorization.k8s.io",
	"FlowSchema.v1.flowcontrol.apiserver.k8s.io", "ValidatingWebhookConfiguration.v1.admissionregistration.k8s.io"}

// children lists the objects with an instance label in the whole cluster.
func (p *player) children(ctx context.Context, instance string) ([]unstructured.Unstructured, error) {
	var all []unstructured.Unstructured
	for _, name := range childKinds {
		list := &unstructured.UnstructuredList{}
		kind, _ := schema.ParseKindArg(name)
		list.SetGroupVersionKind(*kind)
		if err := p.cluster.List(ctx, list, client.MatchingLabels{names.InstanceLabel: instance}); err != nil {
			return nil, err
		}
		all = append(all, list.Items...)
	}
	return all, nil
}

// observeChildren lists the objects of a subject, and reads the records of migrations.
func (p *player) observeChildren(ctx context.Context, now *Observation) error {
	all, err := p.children(ctx, names.Child(crdOf(now.Subject.Name)))
	for _, item := range all {
		pods, _, _ := unstructured.NestedInt64(item.Object, "status", "active")
		now.Children = append(now.Children, child{item.GetKind(), item.GetName(), item.GetLabels()[names.RunLabel], item.GetKind() == "Job" && pods > 0})
		if text, found, _ := unstructured.NestedString(item.Object, "data", contract.RecordKey); found {
			record, parseErr := contract.ParseRecord([]byte(text))
			now.Records, err = append(now.Records, record), errors.Join(err, parseErr)
		}
	}
	return err
}

// observeFleet reads the fleet that the policy uses, and which rulesets of the policy are stored.
func (p *player) observeFleet(ctx context.Context, s Step, now *Observation) (err error) {
	if name := now.Subject.Fleet; name != "" {
		if now.Fleet, err = find(ctx, p, &v1alpha1.ConverterFleet{ObjectMeta: metav1.ObjectMeta{Name: name}}); err != nil {
			return err
		}
		now.Size = int(s.Fleets[slices.Index(fleetNames, name)].Replicas)
		now.Follow = !slices.ContainsFunc(s.After, func(s Subject) bool { return s.Exists && s.Fleet == name && !s.active() })
	}
	all := &corev1.ConfigMapList{}
	if err := p.cluster.List(ctx, all, client.InNamespace(system), client.HasLabels{names.InstanceLabel}); err != nil {
		return err
	}
	now.Rulesets = map[string][]string{}
	for _, configMap := range all.Items {
		place, own := configMap.Labels[names.InstanceLabel], names.Child(crdOf(now.Subject.Name))
		for _, key := range sortedKeys(configMap.BinaryData) {
			hash, is := conversion.StoredHash(key)
			if owner, _ := conversion.StoredOwner(key); is && (owner == own || place == own) {
				now.Rulesets[place] = append(now.Rulesets[place], hash)
			}
		}
	}
	return nil
}

// observeBytes reads etcd, and the CRD after it.
func (p *player) observeBytes(ctx context.Context, now *Observation) error {
	stored, err := scenarios.ReadStored(ctx, groupOf(now.Subject.Name), "crontabs")
	if err != nil {
		return err
	}
	now.Stored = map[string]Stored{}
	for key, text := range stored.Bytes {
		object := &metav1.PartialObjectMetadata{}
		if err := json.Unmarshal([]byte(text), object); err != nil {
			return err
		}
		preserved, err := preservedIn(object.Annotations, crdOf(now.Subject.Name))
		if err != nil {
			return fmt.Errorf("%s: %w", key, err)
		}
		_, version, _ := strings.Cut(object.APIVersion, "/")
		now.Stored[strings.TrimPrefix(key, scenarios.Namespace+"/")] = Stored{version, stored.Revisions[key], preserved}
	}
	after, err := find(ctx, p, &apiextensionsv1.CustomResourceDefinition{ObjectMeta: metaOf(now.Subject.Name)})
	if after != nil {
		now.ListedAfter, now.Conversion = after.Status.StoredVersions, after.Spec.Conversion
	}
	return err
}

// observeReads lists and reads every object in every served version. If the list fails, it skips
// the other reads of that version.
func (p *player) observeReads(ctx context.Context, now *Observation) error {
	now.Reads = map[string]map[string]read{}
	for _, version := range now.Subject.Served {
		all := sortedKeys(now.Subject.Objects)
		reads, objects := make([]read, len(all)), p.objects(now.Subject.Name, version)
		list, err := objects.List(ctx, metav1.ListOptions{})
		if err == nil && len(list.Items) != len(all) {
			return fmt.Errorf("a list at %s has %d objects, want %d", version, len(list.Items), len(all))
		}
		parallel := errgroup.Group{}
		parallel.SetLimit(8)
		for i, name := range all {
			parallel.Go(func() error {
				object, getErr := (*unstructured.Unstructured)(nil), err
				if err == nil {
					object, getErr = objects.Get(ctx, name, metav1.GetOptions{})
				}
				reads[i] = asRead(object, getErr)
				return nil
			})
		}
		_ = parallel.Wait()
		now.Reads[version] = map[string]read{}
		for i, name := range all {
			now.Reads[version][name] = reads[i]
		}
	}
	return nil
}

func asRead(object *unstructured.Unstructured, err error) read {
	if err != nil {
		return read{err: err.Error()}
	}
	spec, _, err := unstructured.NestedMap(object.Object, "spec")
	if err != nil {
		return read{err: err.Error()}
	}
	return read{spec: spec, labels: object.GetLabels()}
}

// observePods reads the certificate that converter pods mount, and connects to each of them as API servers
// do, with caBundle, and if that has changed meanwhile with the new one. The pods are those that the CRD
// names, or those that the policy wants.
func (p *player) observePods(ctx context.Context, now *Observation) error {
	secret, err := find(ctx, p, &corev1.Secret{ObjectMeta: inSystem(now.Subject.place().serving)})
	if err != nil {
		return err
	}
	var trusted []byte // by API servers that convert by this CRD later
	if secret != nil && len(secret.Data[corev1.TLSCertKey]) > 0 {
		certificate, err := pki.ParseCertificate(secret.Data[corev1.TLSCertKey])
		if err != nil {
			return err
		}
		now.Mounted, trusted = certificate.NotAfter, secret.Data[corev1.ServiceAccountRootCAKey]
	}
	if now.CRD == nil {
		return nil
	}
	instance, _ := namedBy(now.CRD)
	if instance == "" {
		instance = now.Subject.place().workload
	} else {
		trusted = webhookOf(now.CRD).CABundle
	}
	pods := &corev1.PodList{}
	err = p.cluster.List(ctx, pods, client.InNamespace(system), client.MatchingLabels{
		names.ComponentLabel: names.ConverterComponent, names.InstanceLabel: instance})
	if err != nil {
		return err
	}
	for _, pod := range pods.Items {
		is := podObservation{Name: pod.Name, Ready: isReady(pod)}
		target := probe.Target{Address: net.JoinHostPort(pod.Status.PodIP, strconv.Itoa(workload.ContainerPort)),
			ServerName: names.ServiceName(instance, system), CABundle: trusted}
		if is.Ready {
			is.probe(ctx, target)
		}
		if untrusted(is.Refused) {
			after, err := find(ctx, p, now.CRD.DeepCopy())
			if err != nil {
				return err
			}
			if webhook := webhookOf(after); webhook != nil {
				target.CABundle = webhook.CABundle
			}
			is.probe(ctx, target)
		}
		now.Pods = append(now.Pods, is)
	}
	return nil
}

func (is *podObservation) probe(ctx context.Context, target probe.Target) {
	ctx, cancel := context.WithTimeout(ctx, podTimeout)
	defer cancel()
	result, err := probe.Pod(ctx, target)
	is.NotAfter, is.Rulesets, is.Refused = result.NotAfter, result.RulesetHashes, err
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
