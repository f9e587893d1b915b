// Copyright The conversion-operator Authors.
// SPDX-License-Identifier: Apache-2.0

package soak

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"sort"
	"strconv"
	"strings"
	"syscall"
	"time"

	"github.com/prometheus/procfs"
	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"
	apiextensionsv1 "k8s.io/apiextensions-apiserver/pkg/apis/apiextensions/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/types"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/conversion-operator/conversion-operator/api/v1alpha1"
	"github.com/conversion-operator/conversion-operator/internal/operator/crds"
	"github.com/conversion-operator/conversion-operator/internal/operator/pki"
	"github.com/conversion-operator/conversion-operator/internal/operator/plan/names"
	"github.com/conversion-operator/conversion-operator/internal/operator/plan/observed"
	"github.com/conversion-operator/conversion-operator/internal/test/etcd"
	"github.com/conversion-operator/conversion-operator/internal/test/scenarios"
)

// The actions below are repeated until they succeed.

// begin creates a policy, and then the CRD with one version.
func (p *player) begin(ctx context.Context, s Step) error {
	if err := p.applyPolicy(ctx, s); err != nil {
		return err
	}
	return p.applyDefinition(ctx, s)
}

// applyPolicy gives a policy the spec of the model.
func (p *player) applyPolicy(ctx context.Context, s Step) error {
	return p.apply(ctx, &v1alpha1.ConversionPolicy{ObjectMeta: metaOf(s.Subject), Spec: *in(s.After, s.Subject).Policy})
}

// metaOf returns the name of the CRD and the policy of a subject.
func metaOf(subject string) metav1.ObjectMeta { return metav1.ObjectMeta{Name: crdOf(subject)} }

// apply gives an object the content of the model, as its author does.
func (p *player) apply(ctx context.Context, object client.Object) error {
	kind, err := p.cluster.GroupVersionKindFor(object)
	if err != nil {
		return err
	}
	content, err := runtime.DefaultUnstructuredConverter.ToUnstructured(object)
	if err != nil {
		return err
	}
	delete(content, "status")
	manifest := &unstructured.Unstructured{Object: content}
	manifest.SetGroupVersionKind(kind)
	return p.cluster.Apply(ctx, client.ApplyConfigurationFromUnstructured(manifest), client.FieldOwner("author"), client.ForceOwnership)
}

// applyDefinition applies the CRD of the model.
func (p *player) applyDefinition(ctx context.Context, s Step) error {
	found, err := find(ctx, p, &apiextensionsv1.CustomResourceDefinition{ObjectMeta: metaOf(s.Subject)})
	if err != nil {
		return err
	}
	is := in(s.After, s.Subject)
	definition, err := is.Definition(found)
	if err != nil {
		return err
	}
	return p.apply(ctx, definition)
}

// end deletes a CRD with all its objects, and then the policy.
func (p *player) end(ctx context.Context, s Step) error {
	if err := p.deleteWhole(ctx, &apiextensionsv1.CustomResourceDefinition{ObjectMeta: metaOf(s.Subject)}); err != nil {
		return err
	}
	return p.deleteWhole(ctx, &v1alpha1.ConversionPolicy{ObjectMeta: metaOf(s.Subject)})
}

// deleteWhole deletes an object, and returns an error until it is gone.
func (p *player) deleteWhole(ctx context.Context, object client.Object) error {
	if err := p.remove(ctx, object); err != nil {
		return err
	}
	found, err := find(ctx, p, object)
	if found != nil {
		return fmt.Errorf("%T %s is still there, with the finalizers %v", object, object.GetName(), object.GetFinalizers())
	}
	return err
}

// remove deletes an object, which may not exist.
func (p *player) remove(ctx context.Context, object client.Object) error {
	return client.IgnoreNotFound(p.cluster.Delete(ctx, object))
}

// abandonPolicy deletes the policy, and keeps its converter running.
func (p *player) abandonPolicy(ctx context.Context, s Step) error {
	policy, err := find(ctx, p, &v1alpha1.ConversionPolicy{ObjectMeta: metaOf(s.Subject)})
	if policy == nil {
		return err
	}
	if policy.DeletionTimestamp.IsZero() { // else an earlier try has deleted it
		policy = &v1alpha1.ConversionPolicy{ObjectMeta: metaOf(s.Subject), Spec: *in(s.Before, s.Subject).Policy}
		policy.Spec.DeletionPolicy = v1alpha1.DeletionAbandon
		if err := p.apply(ctx, policy); err != nil {
			return err
		}
	}
	return p.deleteWhole(ctx, policy)
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
	crd := &apiextensionsv1.CustomResourceDefinition{ObjectMeta: metaOf(s.Subject)}
	if err == nil {
		err = p.cluster.Patch(ctx, crd, client.RawPatch(types.MergePatchType, patch), client.FieldOwner("installer"))
	}
	if err != nil {
		return err
	}
	overwritten := crd.Generation
	return eventually(ctx, "the foreign spec.conversion is undone, and objects are converted again", func(ctx context.Context) error {
		if err := p.cluster.Get(ctx, client.ObjectKeyFromObject(crd), crd); err != nil {
			return err
		}
		if service, _ := namedBy(crd); crd.Generation == overwritten || service == "" || bytes.Equal(webhookOf(crd).CABundle, foreign.Certificate) {
			return fmt.Errorf("generation %d has %v", crd.Generation, crd.Spec.Conversion)
		}
		all, err := p.observe(ctx, s) // an API server may still use the overwritten CRD
		for _, now := range all {
			for _, wrong := range append(violationsOf(unreadable, now, now), violationsOf(readsDiffer, now, now)...) {
				err = errors.Join(err, errors.New(wrong))
			}
		}
		return err
	})
}

// pruneStoredVersions removes every version but the storage version from status.storedVersions
// without rewriting objects, as some instructions advise.
func (p *player) pruneStoredVersions(ctx context.Context, s Step) error {
	var gone []string
	return eventually(ctx, "status.storedVersions is pruned", func(ctx context.Context) error {
		crd := &apiextensionsv1.CustomResourceDefinition{ObjectMeta: metaOf(s.Subject)}
		if err := p.cluster.Get(ctx, client.ObjectKeyFromObject(crd), crd); err != nil {
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
		revision, err := strconv.ParseInt(crd.ResourceVersion, 10, 64)
		if len(gone) > 0 {
			fmt.Fprintf(p.out, "     %v are listed no more\n", gone)
			p.pruned[s.Subject] = Pruning{revision, append(gone, p.pruned[s.Subject].Versions...)}
		}
		return err
	})
}

// retireVersion sets the retirement action of a version. Before a removal, it runs a migration that
// counts preserved data, as the documentation advises, so that the status reports potential losses
// while the version is still served. It waits for the removal.
func (p *player) retireVersion(ctx context.Context, s Step) error {
	version, action, _ := readRetirement(s.Detail)
	if action != v1alpha1.RetirementRemove {
		return p.applyPolicy(ctx, s)
	}
	counting := &v1alpha1.ConversionPolicy{ObjectMeta: metaOf(s.Subject), Spec: *in(s.Before, s.Subject).Policy.DeepCopy()}
	counting.Spec.Migration.Trigger = s.Text
	if err := p.apply(ctx, counting); err != nil {
		return err
	}
	err := eventually(ctx, "the migration has counted what objects hold", func(ctx context.Context) error {
		_, err := find(ctx, p, counting)
		if run := counting.Status.Migration; run == nil || run.Trigger != s.Text || run.State != v1alpha1.MigrationSucceeded {
			return errors.Join(err, fmt.Errorf("the last migration is %+v", run))
		}
		return err
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
	return eventually(ctx, version+" is removed", func(ctx context.Context) error {
		crd := &apiextensionsv1.CustomResourceDefinition{ObjectMeta: metaOf(s.Subject)}
		err := p.cluster.Get(ctx, client.ObjectKeyFromObject(crd), crd)
		if has, _ := crds.Version(crd, version); has != nil {
			return errors.New("the definition has it")
		}
		return err
	})
}

// applyFleets gives the fleets their size and their authority.
func (p *player) applyFleets(ctx context.Context, s Step) error {
	for _, is := range s.Fleets {
		object := &v1alpha1.ConverterFleet{ObjectMeta: metav1.ObjectMeta{Name: is.Name}}
		object.Spec.Replicas = &is.Replicas
		object.Spec.Certificates = &v1alpha1.Certificates{SelfManaged: &v1alpha1.SelfManagedCertificates{RotationTrigger: is.Rotation}}
		if err := p.apply(ctx, object); err != nil {
			return err
		}
	}
	return nil
}

// deleteFleets deletes the fleets, which no policy uses, and waits until nothing of them is left.
func (p *player) deleteFleets(ctx context.Context) error {
	for _, name := range fleetNames {
		err := eventually(ctx, "nothing of fleet "+name+" is left", func(ctx context.Context) error {
			if err := p.deleteWhole(ctx, &v1alpha1.ConverterFleet{ObjectMeta: metav1.ObjectMeta{Name: name}}); err != nil {
				return err
			}
			all, err := p.children(ctx, names.Fleet(name))
			for _, item := range all {
				return fmt.Errorf("there is the %s %s", item.GetKind(), item.GetName())
			}
			return err
		})
		if err != nil {
			return err
		}
	}
	return nil
}

func (p *player) rotateAuthority(ctx context.Context, s Step) error {
	if slices.Contains(fleetNames, s.Detail) {
		return p.applyFleets(ctx, s)
	}
	s.Subject = s.Detail
	return p.applyPolicy(ctx, s)
}

// ofFleet selects what belongs to a fleet.
func ofFleet(name string) []client.ListOption {
	return []client.ListOption{client.InNamespace(system), client.MatchingLabels{names.InstanceLabel: names.Fleet(name)}}
}

// deleteFleetPods deletes pods of a fleet, as when a node is drained without regard to the
// PodDisruptionBudget. It leaves one.
func (p *player) deleteFleetPods(ctx context.Context, s Step) error {
	what, name := cutPlace(s.Detail)
	pods := &corev1.PodList{}
	err := p.cluster.List(ctx, pods, ofFleet(name)...)
	ready := slices.DeleteFunc(pods.Items, func(pod corev1.Pod) bool { return !isReady(pod) })
	if err != nil || len(ready) < 2 {
		return err
	}
	if what == "one" {
		ready = ready[:2]
	}
	for i := range ready[1:] {
		err = errors.Join(err, p.remove(ctx, &ready[i+1]))
	}
	return err
}

// editRulesets changes ConfigMaps of a fleet, which only the operator should.
func (p *player) editRulesets(ctx context.Context, s Step) error {
	what, name := cutPlace(s.Detail)
	shards := &corev1.ConfigMapList{}
	err := p.cluster.List(ctx, shards, ofFleet(name)...)
	for i := range shards.Items {
		shard := &shards.Items[i]
		if keys := sortedKeys(shard.BinaryData); what == deleteRulesets {
			err = errors.Join(err, p.remove(ctx, shard))
		} else if len(keys) > 0 {
			shard.BinaryData[keys[0]] = []byte("damaged")
			err = errors.Join(err, p.cluster.Update(ctx, shard, client.FieldOwner("kubectl-edit")))
		}
	}
	return err
}

// place has the names of the objects of a fleet, or of a policy with pods of its own. The workload is the name
// of the Deployment and of the Service, and the instance label of the pods.
type place struct{ workload, authority, serving, serverName string }

// place is where the pods are that convert for a subject.
func (s *Subject) place() place {
	if s.Fleet != "" {
		return placeOf(s.Fleet)
	}
	return placeOf(s.Name)
}

func placeOf(name string) place {
	if slices.Contains(fleetNames, name) {
		authority, serving, _ := names.FleetSecrets(name)
		return place{names.Fleet(name), authority, serving, names.FleetServerName(name, system)}
	}
	crd := crdOf(name)
	return place{names.Child(crd), names.AuthoritySecret(crd), names.CertificateSecret(crd), names.ServerName(crd, system)}
}

// inSystem names an object in the operator's namespace.
func inSystem(name string) metav1.ObjectMeta { return metav1.ObjectMeta{Namespace: system, Name: name} }

// deleteChild deletes an object that the operator created.
func (p *player) deleteChild(ctx context.Context, s Step) error {
	what, name := cutPlace(s.Detail)
	of := placeOf(name)
	return p.remove(ctx, map[string]client.Object{
		"Deployment":          &appsv1.Deployment{ObjectMeta: inSystem(of.workload)},
		"Service":             &corev1.Service{ObjectMeta: inSystem(of.workload)},
		"serving certificate": &corev1.Secret{ObjectMeta: inSystem(of.serving)},
		"authority":           &corev1.Secret{ObjectMeta: inSystem(of.authority)},
	}[what])
}

// left is the remaining validity of an aged certificate.
const left = 2 * time.Minute

// ageCertificate replaces the serving certificate of converter pods by one that expires soon.
func (p *player) ageCertificate(ctx context.Context, s Step) error {
	of := placeOf(s.Detail)
	authority, serving := &corev1.Secret{ObjectMeta: inSystem(of.authority)}, &corev1.Secret{ObjectMeta: inSystem(of.serving)}
	for _, secret := range []*corev1.Secret{authority, serving} {
		if err := p.cluster.Get(ctx, client.ObjectKeyFromObject(secret), secret); err != nil {
			return err
		}
	}
	aged, err := pki.IssueLeaf(observed.KeyPair(authority), of.serverName, time.Now(), left)
	if err != nil {
		return err
	}
	serving.Data[corev1.TLSCertKey], serving.Data[corev1.TLSPrivateKeyKey] = aged.Certificate, aged.Key
	return p.cluster.Update(ctx, serving)
}

// targets are processes of the cluster, by the beginning of their command line without the folder of the
// program. "one" selects only the last that was started. With the nodes, all pods die.
var targets = map[string][]string{
	"etcd":                    {"etcd"},
	"kube-apiserver":          {"kube-apiserver"},
	"kube-controller-manager": {"kube-controller-manager"},
	"kube-scheduler":          {"kube-scheduler"},
	"the nodes":               {"localcluster-nodes"},
	"one manager":             {"conversion-operator", "manager"},
	"all managers":            {"conversion-operator", "manager"},
	"one converter":           {"conversion-operator", "serve"},
	"all converters":          {"conversion-operator", "serve"},
	"all migrations":          {"conversion-operator", "run-migration"},
}

// processesOf returns the running processes of a target, if any. Those of a cluster have its folder,
// which has the kubeconfig, in their command line or environment.
func processesOf(target string) ([]int, error) {
	home := filepath.Dir(os.Getenv("KUBECONFIG"))
	all, err := procfs.AllProcs()
	sort.Sort(all)
	var found []int
	for _, process := range all {
		line, err := process.CmdLine()
		environment, environmentErr := process.Environ()
		if err == nil && environmentErr == nil && matches(targets[target], home, line, environment) {
			found = append(found, process.PID)
		} // or it has ended meanwhile, or belongs to another user
	}
	if strings.HasPrefix(target, "one ") && len(found) > 0 {
		found = found[len(found)-1:]
	}
	return found, err
}

// matches compares with a command line and an environment.
func matches(want []string, home string, line, environment []string) bool {
	return len(line) >= len(want) && filepath.Base(line[0]) == want[0] && slices.Equal(line[1:len(want)], want[1:]) &&
		slices.ContainsFunc(slices.Concat(line, environment), func(word string) bool { return strings.Contains(word, home) })
}

// signalAll sends a signal, and ignores processes that have ended.
func signalAll(pids []int, signal syscall.Signal) error {
	var failed []error
	for _, pid := range pids {
		if err := syscall.Kill(pid, signal); err != nil && !errors.Is(err, syscall.ESRCH) {
			failed = append(failed, fmt.Errorf("signal %d to process %d: %w", signal, pid, err))
		}
	}
	return errors.Join(failed...)
}

// killProcesses kills processes. Whatever started them restarts them.
func (p *player) killProcesses(_ context.Context, s Step) error {
	pids, err := processesOf(s.Detail)
	return errors.Join(err, signalAll(pids, syscall.SIGKILL))
}

// stopProcesses suspends processes for some seconds.
func (p *player) stopProcesses(_ context.Context, s Step) error {
	pids, err := processesOf(s.Detail)
	err = errors.Join(err, signalAll(pids, syscall.SIGSTOP))
	<-time.After(time.Duration(s.Seconds) * time.Second)
	return errors.Join(err, signalAll(pids, syscall.SIGCONT))
}

// fillDisk makes etcd refuse writes for some seconds.
func (p *player) fillDisk(ctx context.Context, s Step) error {
	setFull := func(ctx context.Context, full bool) error {
		ctx, cancel := context.WithTimeout(ctx, requestTimeout)
		defer cancel()
		return etcd.Client(os.Getenv(scenarios.EndpointVariable)).SetFull(ctx, full)
	}
	if err := setFull(ctx, true); err != nil {
		return err
	}
	<-time.After(time.Duration(s.Seconds) * time.Second)
	return eventually(context.WithoutCancel(ctx), "etcd's alarm ends", func(ctx context.Context) error { return setFull(ctx, false) })
}
