// Copyright The conversion-operator Authors.
// SPDX-License-Identifier: Apache-2.0

package plan_test

import (
	"bytes"
	"fmt"
	"slices"
	"strings"
	"testing"
	"time"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/conversion-operator/conversion-operator/api/v1alpha1"
	"github.com/conversion-operator/conversion-operator/internal/operator/pki"
	"github.com/conversion-operator/conversion-operator/internal/operator/plan"
	"github.com/conversion-operator/conversion-operator/internal/operator/plan/certificates"
	"github.com/conversion-operator/conversion-operator/internal/operator/plan/observed"
	"github.com/conversion-operator/conversion-operator/internal/operator/plan/step"
	"github.com/conversion-operator/conversion-operator/internal/test/expect"
)

// rollout is a world in which nothing is seen at once: an API server goes by any
// caBundle of the last propagation delay, and a pod serves what it has loaded. After
// every single step every API server must be able to verify every pod.
type rollout struct {
	*world
	name string
	// bundles are what API servers may trust, with the time until which they may;
	// the last is what is written.
	bundles []known
	// leaves are what pods serve, by their names.
	leaves map[string]pki.KeyPair
	// lag is for how many looks of the manager pods stay behind the Secret.
	lag int
	// writes counts changes of caBundle, and states those that were seen.
	writes int
	states []v1alpha1.RotationState
	behind int
	// broken is set where API servers and pods cannot meet, whatever is done.
	broken bool
}

type known struct {
	bundle []byte
	until  time.Time
}

// startRollout activates a policy, and lets some time pass.
func startRollout(t *testing.T, policy string, certs v1alpha1.Certificates) *rollout {
	t.Helper()
	w := newWorld(t, strings.Replace(policy, "mode: Automatic", "mode: OnTrigger", 1))
	w.observed.Policy.Spec.Certificates = certs
	return &rollout{world: w, name: w.serverName(), leaves: map[string]pki.KeyPair{}}
}

func (r *rollout) activate() {
	r.t.Helper()
	r.define(bothStoredNew)
	r.later(time.Hour)
	if r.observed.CRD.Spec.Conversion == nil {
		r.t.Fatalf("the policy was not active:\n%s", r.log.String())
	}
	r.bundles = []known{{bundle: r.written()}}
	r.load()
}

func (r *rollout) written() []byte {
	return r.observed.CRD.Spec.Conversion.Webhook.ClientConfig.CABundle
}

// load lets pods take up what they mount. What is no key pair they leave alone.
func (r *rollout) load() {
	if r.observed.Certificate == nil || pki.CheckPair(observed.KeyPair(r.observed.Certificate)) != nil {
		return
	}
	for _, pod := range r.Answerers() {
		r.leaves[pod.Name] = observed.KeyPair(r.observed.Certificate)
	}
}

// run plays until nothing changes any more for longer than it takes to come to rest.
// A manager that does one step and is killed comes to the same end as any other.
func (r *rollout) run(stepsAtOnce int) {
	r.t.Helper()
	for quiet := 0; quiet < 20; quiet++ {
		r.observed.Now = r.observed.Now.Add(5 * time.Second)
		if r.behind++; r.behind > r.lag {
			r.load()
		}
		r.probe()
		decided := plan.Make(*r.observed)
		checkStatus(r.t, r.observed.Policy, decided.Status)
		done := 0
		for _, s := range decided.Steps {
			if _, apply := s.(step.Apply); apply || done == stepsAtOnce {
				continue // pods stay unchanged
			}
			done, quiet = done+1, 0
			r.carryOut(s)
			r.meet(s)
		}
		r.observed.Policy.Status = decided.Status
		if is := decided.Status.Certificate; is != nil && is.Rotation != "" && (len(r.states) == 0 || r.states[len(r.states)-1] != is.Rotation) {
			r.states = append(r.states, is.Rotation)
		}
	}
}

func (r *rollout) carryOut(s step.Step) {
	before := r.written()
	if _, write := s.(step.WriteCertificate); write {
		r.behind = 0
	}
	r.do(s)
	if after := r.written(); !bytes.Equal(before, after) {
		r.writes++
		r.know(after)
	}
}

// know lets API servers take up another caBundle, each in its own time.
func (r *rollout) know(bundle []byte) {
	r.bundles[len(r.bundles)-1].until = r.observed.Now.Add(r.observed.Settings.PropagationDelay)
	r.bundles = append(r.bundles, known{bundle: bundle})
}

// meet lets every API server verify every pod.
func (r *rollout) meet(after step.Step) {
	r.t.Helper()
	for i, known := range r.bundles {
		trusted, err := pki.ParseBundle(known.bundle)
		if err != nil || i < len(r.bundles)-1 && r.observed.Now.After(known.until) {
			continue
		}
		for pod, leaf := range r.leaves {
			if err := pki.CheckLeaf(leaf, trusted, r.name, r.observed.Now); err != nil && !r.broken {
				r.t.Fatalf("after %s an API server that trusts %d authorities refuses %s: %v; states %v",
					r.world.name(after), len(trusted), pod, err, r.states)
			}
		}
	}
}

// probe asks pods as the controller does.
func (r *rollout) probe() {
	r.t.Helper()
	trust := plan.TrustOf(*r.observed)
	for _, pod := range r.Answerers() {
		pod.Proof = &observed.Proof{Successor: r.accepts(trust.Successor, pod.Name)}
		if !pod.Proof.Successor && !r.accepts(trust.CABundle, pod.Name) {
			pod.Proof = &observed.Proof{Reason: "TLSVerificationFailed", Message: "x509"}
		}
	}
}

func (r *rollout) accepts(bundle []byte, pod string) bool {
	trusted, err := pki.ParseBundle(bundle)
	return err == nil && pki.CheckLeaf(r.leaves[pod], trusted, r.name, r.observed.Now) == nil
}

var selfManagedCertificates = v1alpha1.Certificates{Type: v1alpha1.CertificatesSelfManaged, SelfManaged: &v1alpha1.SelfManagedCertificates{
	CADuration: &metav1.Duration{Duration: 300 * time.Hour}, Duration: &metav1.Duration{Duration: 100 * time.Hour}}}

// TestRotation brings a change to what pods serve in every way that there is one,
// with pods that are fast or slow and managers that come far or are killed after
// every step. API servers notice nothing, and the number of writes of the
// CustomResourceDefinition is what it has to be.
func TestRotation(t *testing.T) {
	cases := map[string]struct {
		change func(*rollout)
		writes int
		broken bool
	}{
		"on demand": {func(r *rollout) {
			r.observed.Policy.Spec.Certificates = selfManaged("now")
		}, 2, false},
		"the authority is due": {func(r *rollout) {
			r.observed.Now = r.observed.Now.Add(70 * time.Hour)
			r.run(100)
			r.observed.Now = r.observed.Now.Add(68 * time.Hour)
			r.run(100)
			r.observed.Now = r.observed.Now.Add(65 * time.Hour)
		}, 2, false},
		"the certificate is due": {func(r *rollout) { r.observed.Now = r.observed.Now.Add(70 * time.Hour) }, 0, false},
		"the authority is gone":  {func(r *rollout) { r.observed.Authority = nil }, 2, false},
		"the authority's key is another": {func(r *rollout) {
			r.observed.Authority.Data[corev1.TLSPrivateKeyKey] = r.pair(pki.NewAuthority("x", r.observed.Now, time.Hour)).Key
		}, 2, false},
		"the authority is another": {func(r *rollout) {
			other := r.pair(pki.NewAuthority("x", r.observed.Now, 300*time.Hour))
			r.observed.Authority.Data = map[string][]byte{corev1.TLSCertKey: other.Certificate, corev1.TLSPrivateKeyKey: other.Key}
		}, 2, false},
		"the certificate is gone":           {func(r *rollout) { r.observed.Certificate = nil }, 0, false},
		"the certificate is no certificate": {func(r *rollout) { r.observed.Certificate.Data[corev1.TLSCertKey] = []byte("x") }, 0, false},
		"the certificate's key is another": {func(r *rollout) {
			r.observed.Certificate.Data[corev1.TLSPrivateKeyKey] = r.pair(pki.NewAuthority("x", r.observed.Now, time.Hour)).Key
		}, 0, false},
		"ca.crt is gone":                           {func(r *rollout) { delete(r.observed.Certificate.Data, observed.CAKey) }, 0, false},
		"certificate and authority are gone":       {func(r *rollout) { r.observed.Authority, r.observed.Certificate = nil, nil }, 2, false},
		"all had expired before anybody looked":    {func(r *rollout) { r.observed.Now = r.observed.Now.Add(1000 * time.Hour) }, 1, true},
		"the certificate expired, no one looked":   {func(r *rollout) { r.observed.Now = r.observed.Now.Add(101 * time.Hour) }, 0, true},
		"the next authority is damaged meanwhile":  {damageNext, 2, false},
		"certificates come from a Secret from now": {useSecret, 2, false},
	}
	for name, c := range cases {
		for manners, how := range map[string]struct{ lag, steps int }{"all goes fast": {0, 100}, "slow pods, killed after every step": {8, 1}} {
			t.Run(name+"/"+manners, func(t *testing.T) {
				t.Parallel()
				r := startRollout(t, policyYAML, *selfManagedCertificates.DeepCopy())
				r.activate()
				r.lag, r.broken = how.lag, c.broken
				c.change(r)
				r.run(how.steps)
				expect.Equal(t, fmt.Sprintf("writes of caBundle; states %v", r.states), c.writes, r.writes)
				r.broken = false
				r.meet(step.AddFinalizer{})
				r.rest()
			})
		}
	}
}

// damageNext damages the authority that is to follow, once it is trusted.
func damageNext(r *rollout) {
	r.observed.Policy.Spec.Certificates = selfManaged("now")
	for range 5 {
		r.observed.Now = r.observed.Now.Add(time.Second)
		r.probe()
		for _, s := range plan.Make(*r.observed).Steps {
			if _, apply := s.(step.Apply); !apply {
				r.carryOut(s)
			}
		}
	}
	r.observed.Authority.Data[certificates.NextKeyKey] = []byte("x")
	r.observed.Policy.Spec.Certificates = selfManaged("")
}

// useSecret changes the source.
func useSecret(r *rollout) {
	r.observed.Policy.Spec.Certificates = v1alpha1.Certificates{Type: v1alpha1.CertificatesSecret, Secret: &v1alpha1.SecretCertificates{Name: "theirs"}}
	r.observed.Source = r.theirs("theirs")
}

// rest holds what is true at the end: one authority is trusted, all pods serve
// what the Secret has, and nothing is left to do.
func (r *rollout) rest() {
	r.t.Helper()
	trusted, err := pki.ParseBundle(r.written())
	expect.NoError(r.t, err)
	expect.Equal(r.t, "authorities trusted at the end", 1, len(trusted))
	for pod, leaf := range r.leaves {
		if err := pki.CheckLeaf(leaf, trusted, r.name, r.observed.Now); err != nil {
			r.t.Errorf("%s is refused at the end: %v", pod, err)
		}
	}
	expect.Equal(r.t, "state of the rotation at the end", v1alpha1.RotationIdle, r.observed.Policy.Status.Certificate.Rotation)
	r.probe()
	expect.Equal(r.t, "steps left", nil, kinds(plan.Make(*r.observed).Steps))
}

// another is how a source comes to something by another authority, and how often the
// operator writes the CustomResourceDefinition for it.
type another struct {
	certificates v1alpha1.Certificates
	change       func(*rollout)
	writes       int
}

func sourcesOfOthers() map[string]another {
	renewed := func(r *rollout) { r.observed.Source = r.theirs("theirs") }
	return map[string]another{
		"selfManaged": {*selfManagedCertificates.DeepCopy(), func(r *rollout) {
			r.observed.Policy.Spec.Certificates = selfManaged("now")
		}, 2},
		"certManager": {v1alpha1.Certificates{Type: v1alpha1.CertificatesCertManager, CertManager: &v1alpha1.CertManagerCertificates{
			IssuerRef: v1alpha1.IssuerReference{Name: "company"}}}, renewed, 2},
		"secret":                       {v1alpha1.Certificates{Type: v1alpha1.CertificatesSecret, Secret: &v1alpha1.SecretCertificates{Name: "theirs"}}, renewed, 2},
		"injected":                     {v1alpha1.Certificates{Type: v1alpha1.CertificatesInjected, Injected: &v1alpha1.InjectedCertificates{SecretName: "theirs"}}, injectAnother, 0},
		"from selfManaged to a Secret": {*selfManagedCertificates.DeepCopy(), useSecret, 2},
		"from a Secret to selfManaged": {v1alpha1.Certificates{Type: v1alpha1.CertificatesSecret, Secret: &v1alpha1.SecretCertificates{Name: "theirs"}}, func(r *rollout) {
			r.observed.Policy.Spec.Certificates, r.observed.Source = *selfManagedCertificates.DeepCopy(), nil
		}, 2},
	}
}

// injectAnother is what an injector does that adds an authority before it takes the
// previous one away.
func injectAnother(r *rollout) {
	before := r.observed.Source.Data[observed.CAKey]
	r.observed.Source = r.theirs("theirs")
	r.run(100)
	after := r.observed.Source.Data[observed.CAKey]
	r.inject(slices.Concat(before, after))
	r.run(100)
	r.inject(after)
}

// inject writes caBundle as another client does.
func (r *rollout) inject(bundle []byte) {
	r.observed.CRD.Spec.Conversion.Webhook.ClientConfig.CABundle = bundle
	r.observed.CRD.Generation++
	r.know(bundle)
}

// TestRotationOfOwnConverters is TestRotation for converters that users bring, each
// with each source of certificates: what users run serves a copy of the same
// Secret, which comes to it in its own time. Pods are slow, and managers are killed
// after every step.
func TestRotationOfOwnConverters(t *testing.T) {
	for kind, policy := range map[string]string{"image": imageYAML, "service": serviceYAML, "url": urlYAML} {
		for name, c := range sourcesOfOthers() {
			t.Run(kind+"/"+name, func(t *testing.T) {
				t.Parallel()
				r := startRollout(t, policy, *c.certificates.DeepCopy())
				if kind == "service" || kind == "url" {
					r.answerAt("10.0.0.1:9443", "")
				}
				if certificates.SourceSecret(r.observed.Policy) != "" {
					r.observed.Source = r.theirs("theirs")
				}
				r.activate()
				r.lag = 8
				c.change(r)
				r.run(1)
				expect.Equal(t, fmt.Sprintf("writes of caBundle; states %v", r.states), c.writes, r.writes)
				r.rest()
			})
		}
	}
}

// TestAConverterThatKeepsItsCertificate: an endpoint that goes on serving the
// previous certificate is waited for, and both authorities are trusted as long.
func TestAConverterThatKeepsItsCertificate(t *testing.T) {
	for kind, policy := range map[string]string{"image": imageYAML, "service": serviceYAML, "url": urlYAML} {
		t.Run(kind, func(t *testing.T) {
			r := startRollout(t, policy, *selfManagedCertificates.DeepCopy())
			if kind != "image" {
				r.answerAt("10.0.0.1:9443", "")
			}
			r.activate()
			r.lag = 1000
			r.observed.Policy.Spec.Certificates = selfManaged("now")
			r.run(100)
			expect.Equal(t, "state of the rotation", v1alpha1.RotationVerifying, r.states[len(r.states)-1])
			expect.Equal(t, "writes of caBundle", 1, r.writes)
			if kind == "image" {
				for i := range r.observed.Pods {
					r.observed.Pods[i].Ready = false
				}
				r.run(100)
				expect.Equal(t, "writes of caBundle while pods that are not ready may serve the previous certificate", 1, r.writes)
				r.observed.Pods[0].Ready, r.observed.Pods[1].Ready = true, true
			}
			r.lag = 0
			r.observed.Ending = []observed.EndingPod{{Until: r.observed.Now.Add(time.Hour)}}
			r.observed.Now = r.observed.Now.Add(time.Minute)
			r.run(100)
			expect.Equal(t, "writes of caBundle while a pod that ends may serve the previous certificate", 1, r.writes)
			r.observed.Now = r.observed.Now.Add(time.Hour)
			r.run(100)
			r.rest()
		})
	}
}
