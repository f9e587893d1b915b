// Copyright The conversion-operator Authors.
// SPDX-License-Identifier: Apache-2.0

package soak

import (
	"context"
	"errors"
	"os"
	"path"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"syscall"
	"time"

	"github.com/prometheus/procfs"
	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/equality"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/controller/controllerutil"

	"github.com/conversion-operator/conversion-operator/api/v1alpha1"
	"github.com/conversion-operator/conversion-operator/internal/operator/crds"
	"github.com/conversion-operator/conversion-operator/internal/operator/pki"
	"github.com/conversion-operator/conversion-operator/internal/operator/plan/names"
	"github.com/conversion-operator/conversion-operator/internal/operator/plan/observed"
	"github.com/conversion-operator/conversion-operator/internal/test/etcd"
	"github.com/conversion-operator/conversion-operator/internal/test/scenarios"
)

// act performs the action of a step. It is repeated until it succeeds.
func (p *player) act(ctx context.Context, s Step) error {
	a := actionNamed(s.Action)
	if a.do != nil {
		return a.do(p, ctx, s)
	}
	if a.shell != "" {
		_, err := p.teller.Run(ctx, "env", "CRD="+crdOf(s.Target), "INSTANCE="+instanceOf(s.Target), "VARIANT="+s.Detail, "STEP="+s.text(),
			"bash", "-euo", "pipefail", "-c", a.shell)
		if err != nil {
			return err
		}
	}
	return p.apply(ctx, s)
}

// apply makes policies, CRDs and fleets what their authors want after a step. If a step changes a policy,
// it is the operator that changes the CRD.
func (p *player) apply(ctx context.Context, s Step) error {
	var err error
	for i, is := range s.After.Subjects {
		was, policy, crd := s.Before.Subjects[i], policyOf(is.Name), definitionOf(is.Name)
		newPolicy, newCRD := !equality.Semantic.DeepEqual(was.Policy, is.Policy), !equality.Semantic.DeepEqual(was.CRD, is.CRD)
		if newPolicy && is.Policy != nil {
			err = errors.Join(err, p.put(ctx, policy, func() { policy.Spec = *is.Policy.DeepCopy() }))
		}
		if newCRD && is.CRD != nil && (!newPolicy || was.CRD == nil) {
			err = errors.Join(err, p.put(ctx, crd, func() { crd.Spec = is.Definition(crd).Spec }))
		}
	}
	for name, spec := range sorted(s.After.Fleets) {
		fleet := &v1alpha1.ConverterFleet{ObjectMeta: metav1.ObjectMeta{Name: name}}
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
	crd := definitionOf(s.Target)
	if err := p.cluster.Get(ctx, client.ObjectKeyFromObject(crd), crd); err != nil {
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

// left is the remaining validity of an aged certificate.
const left = 2 * time.Minute

// ageCertificate replaces the serving certificate of converter pods by one that expires soon.
func (p *player) ageCertificate(ctx context.Context, s Step) error {
	instance, authority, serving := instanceOf(s.Target), &corev1.Secret{}, &corev1.Secret{}
	authority.Namespace, authority.Name, serving.Namespace, serving.Name = system, instance+"-ca", system, instance+"-tls"
	for _, secret := range []*corev1.Secret{authority, serving} {
		if err := p.cluster.Get(ctx, client.ObjectKeyFromObject(secret), secret); err != nil {
			return err
		}
	}
	aged, err := pki.IssueLeaf(observed.KeyPair(authority), names.ServiceName(instance, system), time.Now(), left)
	if err != nil {
		return err
	}
	serving.Data[corev1.TLSCertKey], serving.Data[corev1.TLSPrivateKeyKey] = aged.Certificate, aged.Key
	return p.cluster.Update(ctx, serving)
}

// processes of the cluster, by the beginning of their command line without the folder of the program. With
// the nodes, all pods die.
var processes = []string{"etcd", "kube-apiserver", "kube-controller-manager", "kube-scheduler", "localcluster-nodes",
	"conversion-operator manager", "conversion-operator serve", "conversion-operator run-migration"}

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
	return eventually(context.WithoutCancel(ctx), "etcd's alarm ends", func(ctx context.Context) error { return store.SetFull(ctx, false) })
}
