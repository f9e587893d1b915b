// Copyright The conversion-operator Authors.
// SPDX-License-Identifier: Apache-2.0

package plan_test

import (
	"testing"

	"github.com/conversion-operator/conversion-operator/api/v1alpha1"
	"github.com/conversion-operator/conversion-operator/internal/migration/contract"
	"github.com/conversion-operator/conversion-operator/internal/test/golden"
)

const policyYAML = `
metadata: {name: crontabs.example.com}
spec:
  converter:
    declarative:
      hub: v1
      spokes:
      - version: v1beta1
        rules:
        - format: {from: .hostPort, template: "{host}:{port}", to: {host: .host, port: .port}}
  migration: {mode: Automatic}
`

const onlyOld = `
metadata: {name: crontabs.example.com}
spec:
  group: example.com
  names: {plural: crontabs, kind: CronTab}
  scope: Namespaced
  versions:
  - {name: v1beta1, served: true, storage: true, schema: {openAPIV3Schema: {type: object, properties: {hostPort: {type: string}}}}}
`

const bothStoredOld = `
metadata: {name: crontabs.example.com}
spec:
  group: example.com
  names: {plural: crontabs, kind: CronTab}
  scope: Namespaced
  versions:
  - {name: v1beta1, served: true, storage: true, schema: {openAPIV3Schema: {type: object, properties: {hostPort: {type: string}}}}}
  - {name: v1, served: true, storage: false, schema: {openAPIV3Schema: {type: object, properties: {host: {type: string}, port: {type: string}}}}}
`

const bothStoredNew = `
metadata: {name: crontabs.example.com}
spec:
  group: example.com
  names: {plural: crontabs, kind: CronTab}
  scope: Namespaced
  versions:
  - {name: v1beta1, served: true, storage: false, schema: {openAPIV3Schema: {type: object, properties: {hostPort: {type: string}}}}}
  - {name: v1, served: true, storage: true, schema: {openAPIV3Schema: {type: object, properties: {host: {type: string}, port: {type: string}}}}}
`

const onlyNew = `
metadata: {name: crontabs.example.com}
spec:
  group: example.com
  names: {plural: crontabs, kind: CronTab}
  scope: Namespaced
  versions:
  - {name: v1, served: true, storage: true, schema: {openAPIV3Schema: {type: object, properties: {host: {type: string}, port: {type: string}}}}}
`

// TestStories plays whole lifecycles and compares them with their golden files,
// which read as prose. Run with -update to write them.
func TestStories(t *testing.T) {
	stories := map[string]func(*world){
		"policy-first":         policyFirst,
		"existing-crd":         existingCRD,
		"failed-objects":       failedObjects,
		"superseded-migration": supersededMigration,
		"on-trigger":           onTrigger,
		"suspended":            suspended,
		"deletion-blocked":     deletionBlocked,
		"restored":             restored,
		"abandoned":            abandoned,
		"orphaned":             orphaned,
		"recreated-crd":        recreatedCRD,
		"namespace-deleted":    namespaceDeleted,
		"moved":                moved,
		"changing-rules":       changingRules,
		"size-admission":       sizeAdmission,
		"bad-rules":            badRules,
		"a-pod-goes-wrong":     aPodGoesWrong,
		"lost-sample":          lostSample,
		"unreachable":          unreachable,
		"version-first":        versionFirst,
		"storage-at-once":      storageAtOnce,
		"policy-after":         policyAfter,
		"crossplane":           generatedByCrossplane,
		"drift-repaired":       driftRepaired,
		"drift-contested":      driftContested,
		"drift-reported":       driftReported,
		"conversions-fail":     conversionsFail,
		"sampled-again":        sampledAgain,

		"preserved-data":              preservedData,
		"preserved-data-by-trigger":   preservedDataByTrigger,
		"preserved-data-stranded":     preservedDataStranded,
		"preserved-data-late":         preservedDataLate,
		"accepted-losses":             acceptedLosses,
		"migration-suspended":         migrationSuspended,
		"rights-granted":              rightsGranted,
		"migration-cancelled":         migrationCancelled,
		"migration-triggered-again":   migrationTriggeredAgain,
		"migration-with-new-settings": migrationWithNewSettings,
		"migration-beside-another":    migrationBesideAnother,
		"migration-of-pruned":         migrationOfPruned,

		"rotation":                  rotation,
		"rotation-during-migration": rotationDuringMigration,
		"authority-lost":            authorityLost,
		"certificates-of-others":    certificatesOfOthers,
		"certificates-cert-manager": certificatesByCertManager,
		"certificates-injected":     certificatesInjected,
	}
	for name, story := range stories {
		t.Run(name, func(t *testing.T) {
			w := newWorld(t, policyYAML)
			story(w)
			checkStory(t, name, w)
		})
	}
}

func checkStory(t *testing.T, name string, w *world) {
	t.Helper()
	golden.Check(t, w.story(), name+".txt")
}

func policyFirst(w *world) {
	w.say("The policy comes first: there is no CustomResourceDefinition.")
	w.converge()
	w.say("The CustomResourceDefinition is created with its old version only.")
	w.applyCRD(onlyOld)
	w.converge()
	w.say("The new version is added: served, not stored.")
	w.applyCRD(bothStoredOld)
	w.converge()
	w.say("The new version becomes the storage version.")
	w.applyCRD(bothStoredNew)
	w.converge()
	w.say("The migration is half done.")
	w.record(contract.Record{State: contract.StateRunning, Counters: contract.Counters{Total: 1000, Rewritten: 490, Current: 10}})
	w.converge()
	w.say("The migration is done.")
	w.record(contract.Record{State: contract.StateCompleted, Counters: contract.Counters{Total: 1000, Rewritten: 990, Current: 10}})
	w.converge()
	w.say("The old version is removed.")
	w.applyCRD(onlyNew)
	w.converge()
}

func existingCRD(w *world) {
	w.say("A CustomResourceDefinition has two versions already, and no one knows what is stored.")
	w.applyCRD(bothStoredNew)
	w.converge()
	w.say("The migration finds everything in place.")
	w.record(contract.Record{State: contract.StateCompleted, Counters: contract.Counters{Total: 3, Current: 3}})
	w.converge()
}

func failedObjects(w *world) {
	w.say("A migration cannot rewrite one object.")
	w.applyCRD(bothStoredNew)
	w.converge()
	w.record(contract.Record{State: contract.StateCompleted, Counters: contract.Counters{Total: 3, Rewritten: 2, Failed: 1},
		Failures: []v1alpha1.MigrationFailure{{Object: "default/bad", Message: "denied the request: no"}}})
	w.converge()
	w.say("Nothing happens by itself. The object is fixed, and the trigger changed.")
	w.observed.Policy.Spec.Migration.Trigger = "again"
	w.converge()
	w.record(contract.Record{State: contract.StateCompleted, Counters: contract.Counters{Total: 3, Rewritten: 1, Current: 2}})
	w.converge()
}

func supersededMigration(w *world) {
	w.say("A migration runs.")
	w.applyCRD(bothStoredOld)
	w.converge()
	w.record(contract.Record{State: contract.StateRunning, Counters: contract.Counters{Total: 1000, Rewritten: 0, Current: 1}})
	w.converge()
	w.say("The storage version changes under it: what it proved is void.")
	w.applyCRD(bothStoredNew)
	w.converge()
	w.say("The storage version changes there and back: the generation tells.")
	w.applyCRD(bothStoredOld)
	w.applyCRD(bothStoredNew)
	w.converge()
	w.record(contract.Record{State: contract.StateCompleted, Counters: contract.Counters{Total: 1000, Rewritten: 1000}})
	w.converge()
}

func onTrigger(w *world) {
	w.say("Migration waits for a trigger.")
	w.observed.Policy.Spec.Migration.Mode = v1alpha1.MigrationOnTrigger
	w.applyCRD(bothStoredNew)
	w.converge()
	w.say("The trigger is pulled.")
	w.observed.Policy.Spec.Migration.Trigger = "now"
	w.converge()
	w.record(contract.Record{State: contract.StateCompleted, Counters: contract.Counters{Total: 5, Rewritten: 5}})
	w.converge()
	w.say("It is pulled once.")
	w.converge()
}

func suspended(w *world) {
	w.say("A migration runs, and the policy is suspended.")
	w.applyCRD(bothStoredNew)
	w.converge()
	w.observed.Policy.Spec.Suspend = true
	w.converge()
	w.say("It is resumed.")
	w.observed.Policy.Spec.Suspend = false
	w.converge()
}

func changingRules(w *world) {
	w.say("Everything is active.")
	w.observed.Policy.Spec.Migration.Mode = v1alpha1.MigrationOnTrigger
	w.applyCRD(bothStoredNew)
	w.converge()
	w.say("The rules change: pods carry both, and then the CustomResourceDefinition is written.")
	w.changeRules("/")
	w.converge()
	w.say("API servers have had their time: pods carry the new rules only.")
	w.observed.Now = w.observed.Now.Add(w.observed.Settings.PropagationDelay)
	w.converge()
	w.say("The rules change there and back: no pod is replaced for the way back.")
	w.changeRules("@")
	w.converge()
	w.changeRules("/")
	w.converge()
	w.say("They change again and again, and pods keep what API servers may still ask for, up to a limit.")
	for _, separator := range []string{"#", "%", "!"} {
		w.changeRules(separator)
		w.converge()
	}
	w.say("Some time later.")
	w.observed.Now = w.observed.Now.Add(w.observed.Settings.PropagationDelay)
	w.converge()
	w.say("A migration runs, and the rules change: what it proved was by other rules.")
	w.observed.Policy.Spec.Migration.Trigger = "now"
	w.converge()
	w.changeRules(":")
	w.converge()
}

func badRules(w *world) {
	w.say("Everything is active.")
	w.observed.Policy.Spec.Migration.Mode = v1alpha1.MigrationOnTrigger
	w.applyCRD(bothStoredNew)
	w.converge()
	w.say("The rules are broken by an edit.")
	w.changeRules("")
	w.converge()
	w.say("They are fixed, but pods with them do not become ready.")
	w.holdBack = true
	w.changeRules("/")
	w.converge()
	w.say("The previous rules come back.")
	w.changeRules(":")
	w.converge()
	w.say("Others come, whose pods are ready but answer wrongly.")
	w.holdBack = false
	w.misbehave = "a canary came back wrong"
	w.changeRules("@")
	w.converge()
	w.say("The previous rules come back.")
	w.misbehave = ""
	w.changeRules(":")
	w.converge()
}
