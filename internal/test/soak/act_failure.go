// Copyright The conversion-operator Authors.
// SPDX-License-Identifier: Apache-2.0

package main

import (
	"context"
	"errors"
	"fmt"
	"os"
	"time"

	"golang.org/x/sys/unix"
	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/conversion-operator/conversion-operator/internal/pki"
	"github.com/conversion-operator/conversion-operator/internal/plan/names"
	"github.com/conversion-operator/conversion-operator/internal/plan/observed"
	"github.com/conversion-operator/conversion-operator/internal/test/etcd"
	"github.com/conversion-operator/conversion-operator/internal/test/scenarios"
)

// Failures.

// killProcesses kills processes. Whatever started them restarts them.
func (p *player) killProcesses(_ context.Context, s step) error {
	return signalAll(processNamed(s.Detail), unix.SIGKILL)
}

// stopProcesses suspends processes for some seconds.
func (p *player) stopProcesses(ctx context.Context, s step) error {
	pids := processNamed(s.Detail)
	err := signalAll(pids, unix.SIGSTOP)
	return errors.Join(err, wait(ctx, seconds(s)), signalAll(pids, unix.SIGCONT))
}

func seconds(s step) time.Duration { return time.Duration(s.Seconds) * time.Second }

const (
	managerPods   = "of the manager"
	converterPods = "of converters"
	migrationPods = "of migrations"
)

// deletePods deletes pods without a grace period, as when a node is lost.
func (p *player) deletePods(ctx context.Context, s step) error {
	component := map[string]string{
		managerPods: "manager", converterPods: names.ConverterComponent, migrationPods: names.MigrationComponent}[s.Detail]
	return p.eventually(ctx, "pods are deleted", func(ctx context.Context) error {
		return p.cluster.DeleteAllOf(ctx, &corev1.Pod{}, client.InNamespace(system),
			client.MatchingLabels{names.ComponentLabel: component}, client.GracePeriodSeconds(0))
	})
}

// childNames are the objects of a policy that a step can delete.
var childNames = []string{"Deployment", "Service", "serving certificate", "authority", "compiled rules"}

// deleteChild deletes an object that the operator created for a policy. The object may not exist
// yet.
func (p *player) deleteChild(ctx context.Context, s step) error {
	name := crdOf(s.Subject)
	named := func(name string) metav1.ObjectMeta { return metav1.ObjectMeta{Namespace: system, Name: name} }
	victim := map[string]client.Object{
		"Deployment":          &appsv1.Deployment{ObjectMeta: named(names.Child(name))},
		"Service":             &corev1.Service{ObjectMeta: named(names.Child(name))},
		"serving certificate": &corev1.Secret{ObjectMeta: named(names.CertificateSecret(name))},
		"authority":           &corev1.Secret{ObjectMeta: named(names.AuthoritySecret(name))},
		"compiled rules":      &corev1.ConfigMap{ObjectMeta: named(names.Rulesets(name))},
	}[s.Detail]
	return p.eventually(ctx, "the "+s.Detail+" is deleted", func(ctx context.Context) error {
		return client.IgnoreNotFound(p.cluster.Delete(ctx, victim))
	})
}

// fillDisk makes etcd refuse writes for some seconds.
func (p *player) fillDisk(ctx context.Context, s step) error {
	if err := p.setFull(ctx, true); err != nil {
		return err
	}
	err := wait(ctx, seconds(s))
	return errors.Join(err, p.setFull(context.WithoutCancel(ctx), false))
}

func (p *player) setFull(ctx context.Context, full bool) error {
	return p.eventually(ctx, "etcd's alarm changes", func(ctx context.Context) error {
		ctx, cancel := context.WithTimeout(ctx, requestTimeout)
		defer cancel()
		return etcd.Client(os.Getenv(scenarios.EndpointVariable)).SetFull(ctx, full)
	})
}

// left is the remaining validity of an aged certificate.
const left = 2 * time.Minute

// ageCertificate replaces the serving certificate of converter pods by one that expires soon.
func (p *player) ageCertificate(ctx context.Context, s step) error {
	name := crdOf(s.Subject)
	return p.age(ctx, names.AuthoritySecret(name), names.CertificateSecret(name), names.ServerName(name, system))
}

// age replaces the serving certificate in a Secret.
func (p *player) age(ctx context.Context, authorityName, servingName, serverName string) error {
	return p.eventually(ctx, "the certificate is replaced", func(ctx context.Context) error {
		authority, serving := &corev1.Secret{}, &corev1.Secret{}
		for secret, key := range map[*corev1.Secret]string{authority: authorityName, serving: servingName} {
			if found, err := p.find(ctx, client.ObjectKey{Namespace: system, Name: key}, secret); !found {
				return errors.Join(fmt.Errorf("there is no Secret %s", key), err)
			}
		}
		aged, err := pki.IssueLeaf(observed.KeyPair(authority), serverName, time.Now(), left)
		if err != nil {
			return err
		}
		serving.Data[corev1.TLSCertKey], serving.Data[corev1.TLSPrivateKeyKey] = aged.Certificate, aged.Key
		return p.cluster.Update(ctx, serving)
	})
}
