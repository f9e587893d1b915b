// Copyright The conversion-operator Authors.
// SPDX-License-Identifier: Apache-2.0

package soak

import (
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"path"
	"path/filepath"
	"reflect"
	"slices"
	"strconv"
	"strings"
	"syscall"
	"time"

	"github.com/prometheus/procfs"
	"golang.org/x/sync/errgroup"
	corev1 "k8s.io/api/core/v1"
	apiextensionsv1 "k8s.io/apiextensions-apiserver/pkg/apis/apiextensions/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/client-go/rest"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/client/config"
	"sigs.k8s.io/controller-runtime/pkg/controller/controllerutil"
	"sigs.k8s.io/controller-runtime/pkg/reconcile"

	"github.com/conversion-operator/conversion-operator/api/v1alpha1"
	"github.com/conversion-operator/conversion-operator/internal/operator/crds"
	"github.com/conversion-operator/conversion-operator/internal/operator/pki"
	"github.com/conversion-operator/conversion-operator/internal/operator/plan/names"
	"github.com/conversion-operator/conversion-operator/internal/operator/plan/observed"
	"github.com/conversion-operator/conversion-operator/internal/operator/scheme"
	"github.com/conversion-operator/conversion-operator/internal/test/etcd"
	"github.com/conversion-operator/conversion-operator/internal/test/scenarios"
)

const (
	// patience bounds every wait. It exceeds the longest back-off of a node before it restarts a
	// container, plus the time of a migration or a rotation.
	patience = 10 * time.Minute
	// pause is the time between two tries.
	pause = 200 * time.Millisecond
	// requestTimeout bounds requests to an API server that hangs.
	requestTimeout = 15 * time.Second
)

// player performs steps, and checks invariants.
type player struct {
	// teller prints the steps, and runs commands.
	teller  *scenarios.Teller
	cluster client.Client
	// pruned has the etcd revisions at which other clients pruned status.storedVersions, by subject, while
	// objects are stored at the pruned versions.
	pruned map[string]int64
	// last is the previous observation of each subject.
	last map[string]Observation
	// reads counts the reads during steps.
	reads int64
}

// Run installs the operator on the cluster of the current kubeconfig, and plays the steps of a seed for
// a time.
func Run(ctx context.Context, out io.Writer, seed uint64, lasts time.Duration) error {
	kubeconfig, err := config.GetConfig()
	if err != nil {
		return err
	}
	kubeconfig.QPS, kubeconfig.Timeout = -1, requestTimeout
	kubeconfig.WarningHandler = rest.NoWarnings{} // versions are deprecated all the time
	root, rootErr := scenarios.Root()
	cluster, err := client.New(kubeconfig, client.Options{Scheme: scheme.New()})
	if err = errors.Join(rootErr, err); err != nil {
		return err
	}
	p := &player{teller: scenarios.NewTeller(out, root), cluster: cluster, last: map[string]Observation{}, pruned: map[string]int64{}}
	if err := scenarios.Install(ctx, p.teller, scenarios.PropagationDelay); err != nil {
		return err
	}
	p.teller.Say("Some steps overwrite spec.conversion, which the guard would refuse.")
	p.teller.Show(ctx, "kubectl", "delete", "validatingadmissionpolicybinding", "conversion-guard.conversion-operator.io")
	p.teller.Title(fmt.Sprintf("Seed %d, for %s", seed, lasts))
	steps, until := NewSequence(seed), time.Now().Add(lasts)
	err = p.teller.Failure()
	for _, name := range fleetNames {
		first := Step{Target: name, After: steps.State}
		err = errors.Join(err, eventually(ctx, "there are fleets", func() error { return p.apply(ctx, first) }))
	}
	for err == nil && time.Now().Before(until) {
		err = p.play(ctx, steps.Next())
	}
	if err != nil {
		return fmt.Errorf("\nFAILED with seed %d in step %d (make soak SOAKSEED=%d plays it again):\n%w", seed, steps.number, seed, err)
	}
	p.teller.Say("seed %d: %d steps, %d reads meanwhile, and every invariant held", seed, steps.number, p.reads)
	return nil
}

// play performs one step while clients read and write, and then checks the invariants.
func (p *player) play(ctx context.Context, s Step) error {
	start := time.Now()
	fmt.Fprintln(p.teller.Out, s)
	reads := []Invariant{readsAsWritten}
	if s.Gentle { // pods that convert are there all the time
		reads = append(reads, readable)
	}
	reader := p.startReading(ctx, s, reads)
	err := p.do(ctx, s)
	if err == nil {
		err = p.checkInvariants(ctx, s, reads)
	}
	count, wrong := reader.Stop()
	p.reads += count
	fmt.Fprintf(p.teller.Out, "     %.1f s\n", time.Since(start).Seconds())
	return errors.Join(err, wrong)
}

// do performs the action of a step while clients write. Like controllers, all of them retry until they succeed.
func (p *player) do(ctx context.Context, s Step) error {
	actors, ctx := errgroup.WithContext(ctx)
	actors.Go(func() error {
		return eventually(ctx, s.Name+" succeeds", func() error { return p.act(ctx, s) })
	})
	for _, w := range s.Writes {
		actors.Go(func() error {
			return eventually(ctx, w.String(), func() error { return p.write(ctx, w) })
		})
	}
	return actors.Wait()
}

// checkInvariants observes until the invariants hold: those that always hold, with those of reads, and, if the step
// waits, those that hold once nothing changes any more.
func (p *player) checkInvariants(ctx context.Context, s Step, reads []Invariant) error {
	always, atRest := slices.Concat(Always, reads), AtRest
	if s.breaks {
		always, atRest = nil, slices.Concat(always, AtRest)
	}
	return eventually(ctx, "the cluster comes to rest", func() (notYet error) {
		for name, subject := range s.After.Subjects {
			now, err := p.observe(ctx, s, subject)
			if err != nil {
				return err
			}
			if err := Check(always, now, p.last[name]); err != nil {
				return reconcile.TerminalError(fmt.Errorf("what must never be:\n%w", err))
			}
			if s.Waits {
				notYet = errors.Join(notYet, Check(atRest, now, p.last[name]))
			}
			p.last[name], p.pruned[name] = now, now.StillPruned()
		}
		return notYet
	})
}

// eventually calls try until it returns no error, or a terminal one.
func eventually(ctx context.Context, what string, try func() error) error {
	for until := time.Now().Add(patience); ; <-time.After(pause) {
		err := try()
		if err == nil {
			return nil
		}
		if ctx.Err() != nil || time.Now().After(until) || errors.Is(err, reconcile.TerminalError(nil)) {
			return fmt.Errorf("expected that %s, within %s: %w", what, patience, err)
		}
	}
}

// write performs a write of a client. If the response was lost, the next try finds that write.
func (p *player) write(ctx context.Context, w Write) error {
	object, list := w.empty()
	if !w.Delete {
		return p.put(ctx, object, func() { object.Object["spec"] = w.spec(w.Version) })
	}
	err := p.cluster.Delete(ctx, object)
	if apierrors.IsNotFound(err) {
		// An API server that starts returns the same error for every version.
		err = p.cluster.List(ctx, list, client.Limit(1))
	}
	return err
}

// empty returns the object, and a list of such objects, without content.
func (o object) empty() (*unstructured.Unstructured, *unstructured.UnstructuredList) {
	version := groupOf(o.Subject) + "/" + o.Version
	return &unstructured.Unstructured{Object: map[string]any{"apiVersion": version, "kind": "CronTab",
			"metadata": map[string]any{"name": o.Name, "namespace": scenarios.Namespace}}},
		&unstructured.UnstructuredList{Object: map[string]any{"apiVersion": version, "kind": "CronTabList"}}
}

// startReading starts a client that reads, in turn, objects that the step does not change, at versions that are
// served before and after it, and checks invariants of reads.
func (p *player) startReading(ctx context.Context, s Step, invariants []Invariant) *scenarios.Client {
	all, next := s.unchanged(), 0
	return scenarios.Repeat(ctx, func(ctx context.Context) error {
		if len(all) == 0 {
			return nil
		}
		each := all[next%len(all)]
		next++
		is, _ := each.empty()
		// A request that is cancelled is a failed conversion for the API server.
		err := p.cluster.Get(context.WithoutCancel(ctx), client.ObjectKeyFromObject(is), is)
		now := Observation{Subject: s.After.Subjects[each.Subject], Reads: []read{{each, is.Object["spec"], err}}}
		return Check(invariants, now, now)
	})
}

// unchanged returns what reads the same before and after a step, and during it.
func (s Step) unchanged() (all []object) {
	for subject, is := range s.After.Subjects {
		if s.breaks && s.Target == subject {
			continue
		}
		was := s.Before.Subjects[subject]
		for name, record := range was.Objects {
			for _, version := range was.served() {
				if slices.Contains(is.served(), version) && reflect.DeepEqual(is.Objects[name].spec(version), record.spec(version)) {
					all = append(all, object{subject, name, version})
				}
			}
		}
	}
	return all
}

// act performs the action of a step. It is repeated until it succeeds.
func (p *player) act(ctx context.Context, s Step) error {
	if do := s.do; do != nil {
		return do(p, ctx, s)
	}
	if err := p.script(ctx, s); err != nil {
		return err
	}
	return p.apply(ctx, s)
}

// script runs the script of an action, which may be empty.
func (p *player) script(ctx context.Context, s Step) error {
	_, err := p.teller.Run(ctx, "env", "CRD="+crdOf(s.Target), "INSTANCE="+instanceOf(s.Target), "VARIANT="+s.Detail, "STEP="+s.text(),
		"bash", "-euo", "pipefail", "-c", s.shell)
	return err
}

// apply makes the policy, the CRD or the fleet that is the target what its author wants.
func (p *player) apply(ctx context.Context, s Step) (err error) {
	is, spec := s.subject(), s.fleet()
	if is != nil && is.Policy != nil {
		policy := &v1alpha1.ConversionPolicy{ObjectMeta: metav1.ObjectMeta{Name: crdOf(s.Target)}}
		err = p.put(ctx, policy, func() { policy.Spec = *is.Policy.DeepCopy() })
	}
	if s.Author {
		crd := &apiextensionsv1.CustomResourceDefinition{ObjectMeta: metav1.ObjectMeta{Name: crdOf(s.Target)}}
		err = errors.Join(err, p.put(ctx, crd, func() { crd.Spec = is.Definition(crd).Spec }))
	}
	if spec != nil {
		fleet := &v1alpha1.ConverterFleet{ObjectMeta: metav1.ObjectMeta{Name: s.Target}}
		err = errors.Join(err, p.put(ctx, fleet, func() { fleet.Spec = *spec.DeepCopy() }))
	}
	return err
}

// put creates or updates an object with the content that set gives it.
func (p *player) put(ctx context.Context, object client.Object, set func()) error {
	_, err := controllerutil.CreateOrUpdate(ctx, p.cluster, object, func() error {
		set()
		return nil
	})
	return err
}

// pruneStoredVersions removes every version but the storage version from status.storedVersions
// without rewriting objects, as some instructions advise.
func (p *player) pruneStoredVersions(ctx context.Context, s Step) error {
	crd := &apiextensionsv1.CustomResourceDefinition{}
	if err := p.cluster.Get(ctx, client.ObjectKey{Name: crdOf(s.Target)}, crd); err != nil {
		return err
	}
	crd.Status.StoredVersions = []string{crds.StorageVersion(crd)}
	if err := p.cluster.Status().Update(ctx, crd, client.FieldOwner("kubectl-edit")); err != nil {
		return err
	}
	revision, err := strconv.ParseInt(crd.ResourceVersion, 10, 64)
	p.pruned[s.Target] = revision
	return err
}

// ageCertificate replaces the serving certificate of converter pods by one that expires soon.
func (p *player) ageCertificate(ctx context.Context, s Step) error {
	instance, authority, serving := instanceOf(s.Target), &corev1.Secret{}, &corev1.Secret{}
	authority.Namespace, authority.Name, serving.Namespace, serving.Name = system, instance+"-ca", system, instance+"-tls"
	for _, secret := range []*corev1.Secret{authority, serving} {
		if err := p.cluster.Get(ctx, client.ObjectKeyFromObject(secret), secret); err != nil {
			return err
		}
	}
	aged, err := pki.IssueLeaf(observed.KeyPair(authority), names.ServiceName(instance, system), time.Now(), 2*time.Minute)
	if err != nil {
		return err
	}
	serving.Data[corev1.TLSCertKey], serving.Data[corev1.TLSPrivateKeyKey] = aged.Certificate, aged.Key
	return p.cluster.Update(ctx, serving)
}

// processes of the cluster, by the beginning of their command line without the folder of the program. With
// the nodes, all pods die.
var processes = []string{"etcd", "kube-apiserver", "kube-controller-manager", "kube-scheduler", "localcluster-nodes",
	"conversion-operator manager", "conversion-operator run-migration", "converter"}

// signal sends a signal to running processes, if any. Those of a cluster have its folder, which has the
// kubeconfig, in their command line or environment.
func signal(name string, signal syscall.Signal) error {
	home := filepath.Dir(os.Getenv("KUBECONFIG"))
	all, err := procfs.AllProcs()
	for _, process := range all {
		line, _ := process.CmdLine() // none if it has ended, or belongs to another user
		environment, _ := process.Environ()
		if !matches(name, home, line, environment) {
			continue
		}
		if failed := syscall.Kill(process.PID, signal); !errors.Is(failed, syscall.ESRCH) {
			err = errors.Join(err, failed)
		}
	}
	return err
}

// matches compares with a command line and an environment.
func matches(name, home string, line, environment []string) bool {
	began := len(line) > 0 && strings.HasPrefix(path.Base(line[0])+" "+strings.Join(line[1:], " ")+" ", name+" ")
	return began && strings.Contains(strings.Join(slices.Concat(line, environment), " "), home)
}

// kill kills processes. Whatever started them restarts them.
func (p *player) kill(_ context.Context, s Step) error { return signal(s.Detail, syscall.SIGKILL) }

// outage is the duration of failures that end.
const outage = 5 * time.Second

// stop suspends processes for a while.
func (p *player) stop(_ context.Context, s Step) error {
	err := signal(s.Detail, syscall.SIGSTOP)
	<-time.After(outage)
	return errors.Join(err, signal(s.Detail, syscall.SIGCONT))
}

// fillDisk makes etcd refuse writes for a while.
func (p *player) fillDisk(ctx context.Context, _ Step) error {
	store := etcd.Client(os.Getenv(scenarios.EndpointVariable))
	if err := store.SetFull(ctx, true); err != nil {
		return err
	}
	<-time.After(outage)
	ctx = context.WithoutCancel(ctx)
	return eventually(ctx, "etcd's alarm ends", func() error { return store.SetFull(ctx, false) })
}
