// Copyright The conversion-operator Authors.
// SPDX-License-Identifier: Apache-2.0

package soak

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"slices"
	"strconv"
	"time"

	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"
	apiextensionsv1 "k8s.io/apiextensions-apiserver/pkg/apis/apiextensions/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/types"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/controller/controllerutil"

	"github.com/conversion-operator/conversion-operator/api/v1alpha1"
	"github.com/conversion-operator/conversion-operator/internal/crds"
	"github.com/conversion-operator/conversion-operator/internal/pki"
	"github.com/conversion-operator/conversion-operator/internal/plan/names"
	"github.com/conversion-operator/conversion-operator/internal/plan/observed"
)

// nothing lets a step have only the writes of clients.
func (p *player) nothing(context.Context, Step) error { return nil }

// begin creates a policy, and then the CRD with one version.
func (p *player) begin(ctx context.Context, s Step) error {
	if err := p.applyPolicy(ctx, s); err != nil {
		return err
	}
	return p.applyDefinition(ctx, s)
}

// applyPolicy gives a policy the spec of the model.
func (p *player) applyPolicy(ctx context.Context, s Step) error {
	return p.applySubject(ctx, in(s.After, s.Subject), v1alpha1.DeletionRetain)
}

func (p *player) applySubject(ctx context.Context, is Subject, deletion v1alpha1.DeletionPolicy) error {
	spec, err := is.PolicySpec()
	if err != nil {
		return err
	}
	spec.DeletionPolicy = deletion
	policy := &v1alpha1.ConversionPolicy{ObjectMeta: metav1.ObjectMeta{Name: crdOf(is.Name)}}
	return p.apply(ctx, policy, func() { policy.Spec = *spec.DeepCopy() })
}

// apply creates an object, or changes it.
func (p *player) apply(ctx context.Context, object client.Object, change func()) error {
	return p.eventually(ctx, fmt.Sprintf("%T %s is applied", object, object.GetName()), func(ctx context.Context) error {
		_, err := controllerutil.CreateOrUpdate(ctx, p.cluster, object, func() error {
			change()
			return nil
		})
		return err
	})
}

// applyDefinition applies the CRD of the model.
func (p *player) applyDefinition(ctx context.Context, s Step) error {
	return p.eventually(ctx, "the definition is applied", func(ctx context.Context) error {
		crd, warnings := &apiextensionsv1.CustomResourceDefinition{}, map[string]*string{}
		if _, err := p.find(ctx, client.ObjectKey{Name: crdOf(s.Subject)}, crd); err != nil {
			return err
		}
		for _, version := range crd.Spec.Versions {
			warnings[version.Name] = version.DeprecationWarning
		}
		is := in(s.After, s.Subject)
		definition, err := is.Definition(warnings)
		if err != nil {
			return err
		}
		content, err := runtime.DefaultUnstructuredConverter.ToUnstructured(definition)
		if err != nil {
			return err
		}
		delete(content, "status")
		manifest := client.ApplyConfigurationFromUnstructured(&unstructured.Unstructured{Object: content})
		return p.cluster.Apply(ctx, manifest, client.FieldOwner("author"), client.ForceOwnership)
	})
}

// end deletes a CRD with all its objects, and then the policy.
func (p *player) end(ctx context.Context, s Step) error {
	for _, object := range []client.Object{
		&apiextensionsv1.CustomResourceDefinition{ObjectMeta: metav1.ObjectMeta{Name: crdOf(s.Subject)}},
		&v1alpha1.ConversionPolicy{ObjectMeta: metav1.ObjectMeta{Name: crdOf(s.Subject)}},
	} {
		if err := p.deleteWhole(ctx, object); err != nil {
			return err
		}
	}
	return nil
}

// deleteWhole deletes an object, and waits until it is gone.
func (p *player) deleteWhole(ctx context.Context, object client.Object) error {
	return p.eventually(ctx, fmt.Sprintf("%T %s is deleted", object, object.GetName()), func(ctx context.Context) error {
		if err := client.IgnoreNotFound(p.cluster.Delete(ctx, object)); err != nil {
			return err
		}
		found, err := p.find(ctx, client.ObjectKeyFromObject(object), object)
		if found {
			return fmt.Errorf("it is still there, with the finalizers %v", object.GetFinalizers())
		}
		return err
	})
}

// abandonPolicy deletes the policy, and keeps its converter running.
func (p *player) abandonPolicy(ctx context.Context, s Step) error {
	if err := p.applySubject(ctx, in(s.Before, s.Subject), v1alpha1.DeletionAbandon); err != nil {
		return err
	}
	return p.deleteWhole(ctx, &v1alpha1.ConversionPolicy{ObjectMeta: metav1.ObjectMeta{Name: crdOf(s.Subject)}})
}

// overwriteConversion replaces spec.conversion like an installer that does not know the operator,
// and waits until the operator has reverted that and API servers convert again.
func (p *player) overwriteConversion(ctx context.Context, s Step) error {
	foreign, err := pki.NewAuthority("somebody else", time.Now(), 24*time.Hour)
	if err != nil {
		return err
	}
	patch, err := json.Marshal(map[string]any{"spec": map[string]any{"conversion": map[string]any{
		strategyNone:     map[string]any{"strategy": "None", "webhook": nil},
		foreignAuthority: map[string]any{"webhook": map[string]any{"clientConfig": map[string]any{"caBundle": foreign.Certificate}}},
		foreignService:   map[string]any{"webhook": map[string]any{"clientConfig": map[string]any{"service": map[string]any{"name": "nobody"}}}},
	}[s.Detail]}})
	if err != nil {
		return err
	}
	crd := &apiextensionsv1.CustomResourceDefinition{ObjectMeta: metav1.ObjectMeta{Name: crdOf(s.Subject)}}
	err = p.eventually(ctx, "spec.conversion is overwritten", func(ctx context.Context) error {
		return p.cluster.Patch(ctx, crd, client.RawPatch(types.MergePatchType, patch), client.FieldOwner("installer"))
	})
	if err != nil {
		return err
	}
	overwritten := crd.Generation
	return p.eventually(ctx, "the foreign spec.conversion is undone, and objects are converted again", func(ctx context.Context) error {
		if err := p.cluster.Get(ctx, client.ObjectKeyFromObject(crd), crd); err != nil {
			return err
		}
		if service, _ := namedBy(crd); crd.Generation == overwritten || service == "" || string(webhookOf(crd).CABundle) == string(foreign.Certificate) {
			return fmt.Errorf("generation %d has %v", crd.Generation, crd.Spec.Conversion)
		}
		all, err := p.observe(ctx, s) // an API server may still use the overwritten CRD
		for _, now := range all {
			violated := func(format string, args ...any) { err = errors.Join(err, fmt.Errorf(format, args...)) }
			unreadable(now, now, violated)
			readsDiffer(now, now, violated)
		}
		return err
	})
}

// pruneStoredVersions removes every version but the storage version from status.storedVersions
// without rewriting objects, as some instructions advise.
func (p *player) pruneStoredVersions(ctx context.Context, s Step) error {
	var gone []string
	revision := int64(0)
	err := p.eventually(ctx, "status.storedVersions is pruned", func(ctx context.Context) error {
		crd := &apiextensionsv1.CustomResourceDefinition{}
		if err := p.cluster.Get(ctx, client.ObjectKey{Name: crdOf(s.Subject)}, crd); err != nil {
			return err
		}
		storage, before := crds.StorageVersion(crd), crd.DeepCopy()
		if others := without(crd.Status.StoredVersions, storage); len(others) > 0 {
			gone, crd.Status.StoredVersions = others, []string{storage}
			patch := client.MergeFromWithOptions(before, client.MergeFromWithOptimisticLock{})
			if err := p.cluster.Status().Patch(ctx, crd, patch, client.FieldOwner("kubectl-edit")); err != nil {
				if apierrors.IsConflict(err) {
					gone = nil // another writer changed it: this try pruned nothing
				}
				return err
			}
		}
		var err error
		revision, err = strconv.ParseInt(crd.ResourceVersion, 10, 64)
		return err
	})
	if len(gone) > 0 {
		fmt.Fprintf(p.out, "     %v are listed no more\n", gone)
		p.pruned[s.Subject] = Pruning{revision, append(gone, p.pruned[s.Subject].Versions...)}
	}
	return err
}

// forgetPruned deletes the record of prunings once all stored versions are listed again.
func (p *player) forgetPruned(all map[string]Observation) {
	for name, now := range all {
		if len(now.unlisted()) == 0 {
			delete(p.pruned, name)
		}
	}
}

// retireVersion sets the retirement action of a version. Before a removal, it runs a migration that
// counts preserved data, as the documentation advises, so that the status reports potential losses
// while the version is still served. It waits for the removal.
func (p *player) retireVersion(ctx context.Context, s Step) error {
	version, action, _ := readRetirement(s.Detail)
	if action != v1alpha1.RetirementRemove {
		return p.applyPolicy(ctx, s)
	}
	counting := in(s.Before, s.Subject)
	counting.Trigger = s.Text
	if err := p.applySubject(ctx, counting, v1alpha1.DeletionRetain); err != nil {
		return err
	}
	key := client.ObjectKey{Name: crdOf(s.Subject)}
	err := p.eventually(ctx, "the migration has counted what objects hold", func(ctx context.Context) error {
		policy := &v1alpha1.ConversionPolicy{}
		if err := p.cluster.Get(ctx, key, policy); err != nil {
			return err
		}
		if run := policy.Status.Migration; run == nil || run.Trigger != s.Text || run.State != v1alpha1.MigrationSucceeded {
			return fmt.Errorf("the last migration is %+v", run)
		}
		return nil
	})
	if err != nil {
		return err
	}
	if err := p.applyPolicy(ctx, s); err != nil {
		return err
	}
	if _, blocker := s.blockedRemoval(); blocker != "" {
		return nil
	}
	return p.eventually(ctx, version+" is removed", func(ctx context.Context) error {
		crd := &apiextensionsv1.CustomResourceDefinition{}
		err := p.cluster.Get(ctx, key, crd)
		if has, _ := crds.Version(crd, version); has != nil {
			return errors.New("the definition has it")
		}
		return err
	})
}

func (p *player) applyFleet(ctx context.Context, is fleet) error {
	object := &v1alpha1.ConverterFleet{ObjectMeta: metav1.ObjectMeta{Name: is.Name}}
	return p.apply(ctx, object, func() {
		object.Spec.Replicas = &is.Replicas
		object.Spec.Certificates = &v1alpha1.Certificates{SelfManaged: &v1alpha1.SelfManagedCertificates{RotationTrigger: is.Rotation}}
	})
}

// deleteFleet deletes a fleet that no policy uses, and waits until nothing of it is left.
func (p *player) deleteFleet(ctx context.Context, name string) error {
	if err := p.deleteWhole(ctx, &v1alpha1.ConverterFleet{ObjectMeta: metav1.ObjectMeta{Name: name}}); err != nil {
		return err
	}
	return p.eventually(ctx, "nothing of fleet "+name+" is left", func(ctx context.Context) error {
		all, err := p.children(ctx, names.Fleet(name))
		for _, item := range all {
			return fmt.Errorf("there is the %s %s", item.GetKind(), item.GetName())
		}
		return err
	})
}

func (p *player) scaleFleet(ctx context.Context, s Step) error {
	name, _ := readSize(s.Detail)
	return p.applyFleet(ctx, s.Fleets[slices.Index(fleetNames, name)])
}

func (p *player) rotateAuthority(ctx context.Context, s Step) error {
	if i := slices.Index(fleetNames, s.Detail); i >= 0 {
		return p.applyFleet(ctx, s.Fleets[i])
	}
	s.Subject = s.Detail
	return p.applyPolicy(ctx, s)
}

// deleteFleetPods deletes pods of a fleet, as when a node is drained without regard to the
// PodDisruptionBudget.
func (p *player) deleteFleetPods(ctx context.Context, s Step) error {
	what, name := cutPlace(s.Detail)
	pods := &corev1.PodList{}
	err := p.eventually(ctx, "the pods of the fleet are read", func(ctx context.Context) error {
		return p.cluster.List(ctx, pods, client.InNamespace(system), client.MatchingLabels{names.InstanceLabel: names.Fleet(name)})
	})
	ready := slices.DeleteFunc(pods.Items, func(pod corev1.Pod) bool { return !isReady(pod) })
	if err != nil || len(ready) < 2 {
		return err
	}
	victims := ready[1:]
	if what == "one" {
		victims = ready[:1]
	}
	for i := range victims {
		if err := p.remove(ctx, &victims[i]); err != nil {
			return err
		}
	}
	return nil
}

// remove deletes an object, which may not exist.
func (p *player) remove(ctx context.Context, object client.Object) error {
	return p.eventually(ctx, fmt.Sprintf("%T %s is deleted", object, object.GetName()), func(ctx context.Context) error {
		return client.IgnoreNotFound(p.cluster.Delete(ctx, object))
	})
}

// editRulesets changes ConfigMaps of a fleet, which only the operator should.
func (p *player) editRulesets(ctx context.Context, s Step) error {
	what, name := cutPlace(s.Detail)
	return p.eventually(ctx, "rulesets are edited", func(ctx context.Context) error {
		shards := &corev1.ConfigMapList{}
		if err := p.cluster.List(ctx, shards, client.InNamespace(system), client.MatchingLabels{names.InstanceLabel: names.Fleet(name)}); err != nil {
			return err
		}
		for i := range shards.Items {
			shard, err := &shards.Items[i], error(nil)
			if keys := sortedKeys(shard.BinaryData); what == deleteRulesets {
				err = client.IgnoreNotFound(p.cluster.Delete(ctx, shard))
			} else if len(keys) > 0 {
				shard.BinaryData[keys[0]] = []byte("damaged")
				err = p.cluster.Update(ctx, shard, client.FieldOwner("kubectl-edit"))
			}
			if err != nil {
				return err
			}
		}
		return nil
	})
}

// place has the names of the objects of a fleet, or of a policy with pods of its own.
type place struct{ workload, authority, serving, serverName string }

func placeOf(s Subject) place {
	if s.Fleet != "" {
		return placeNamed(s.Fleet)
	}
	return placeNamed(s.Name)
}

func placeNamed(name string) place {
	if slices.Contains(fleetNames, name) {
		authority, serving, _ := names.FleetSecrets(name)
		return place{names.Fleet(name), authority, serving, names.FleetServerName(name, system)}
	}
	crd := crdOf(name)
	return place{names.Child(crd), names.AuthoritySecret(crd), names.CertificateSecret(crd), names.ServerName(crd, system)}
}

// deleteChild deletes an object that the operator created.
func (p *player) deleteChild(ctx context.Context, s Step) error {
	what, name := cutPlace(s.Detail)
	of := placeNamed(name)
	named := func(name string) metav1.ObjectMeta { return metav1.ObjectMeta{Namespace: system, Name: name} }
	return p.remove(ctx, map[string]client.Object{
		"Deployment":          &appsv1.Deployment{ObjectMeta: named(of.workload)},
		"Service":             &corev1.Service{ObjectMeta: named(of.workload)},
		"serving certificate": &corev1.Secret{ObjectMeta: named(of.serving)},
		"authority":           &corev1.Secret{ObjectMeta: named(of.authority)},
	}[what])
}

// left is the remaining validity of an aged certificate.
const left = 2 * time.Minute

// ageCertificate replaces the serving certificate of converter pods by one that expires soon.
func (p *player) ageCertificate(ctx context.Context, s Step) error {
	of := placeNamed(s.Detail)
	return p.eventually(ctx, "the certificate is replaced", func(ctx context.Context) error {
		authority, serving := &corev1.Secret{}, &corev1.Secret{}
		for secret, name := range map[*corev1.Secret]string{authority: of.authority, serving: of.serving} {
			if err := p.cluster.Get(ctx, client.ObjectKey{Namespace: system, Name: name}, secret); err != nil {
				return err
			}
		}
		aged, err := pki.IssueLeaf(observed.KeyPair(authority), of.serverName, time.Now(), left)
		if err != nil {
			return err
		}
		serving.Data[corev1.TLSCertKey], serving.Data[corev1.TLSPrivateKeyKey] = aged.Certificate, aged.Key
		return p.cluster.Update(ctx, serving)
	})
}
