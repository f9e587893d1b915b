// Copyright The conversion-operator Authors.
// SPDX-License-Identifier: Apache-2.0

package plan_test

import (
	"slices"
	"testing"
	"time"

	"github.com/conversion-operator/conversion-operator/api/v1alpha1"
	"github.com/conversion-operator/conversion-operator/internal/migration/contract"
	"github.com/conversion-operator/conversion-operator/internal/operator/plan/observed"
	"github.com/conversion-operator/conversion-operator/internal/test/golden"
)

const policyYAML = `
metadata: {name: crontabs.example.com}
spec:
  converter:
    type: Declarative
    declarative:
      hub: v1
      spokes:
      - version: v1beta1
        rules:
        - format: {from: .hostPort, template: "{host}:{port}", to: {host: .host, port: .port}}
  migration: {mode: Automatic}
`

// Definitions of the kind, by their versions.
const (
	onlyOld       = kind + oldStored
	bothStoredOld = kind + oldStored + newServed
	bothStoredNew = kind + oldServed + newStored
	onlyNew       = kind + newStored

	kind = `
metadata: {name: crontabs.example.com}
spec:
  group: example.com
  names: {plural: crontabs, kind: CronTab}
  scope: Namespaced
  versions:
`
	oldStored = "  - {name: v1beta1, served: true, storage: true, " + oldSchema
	oldServed = "  - {name: v1beta1, served: true, storage: false, " + oldSchema
	newStored = "  - {name: v1, served: true, storage: true, " + newSchema
	newServed = "  - {name: v1, served: true, storage: false, " + newSchema
	oldSchema = "schema: {openAPIV3Schema: {type: object, properties: {hostPort: {type: string}}}}}\n"
	newSchema = "schema: {openAPIV3Schema: {type: object, properties: {host: {type: string}, port: {type: string}}}}}\n"
)

// withEvents are the stories of which all events that users see are compared, too: one for each transition, on
// the policy or, marked, on the CustomResourceDefinition as well.
var withEvents = []string{
	"policy-first", "bad-rules", "failed-objects", "drift-contested", "deletion-blocked", "lost-sample", "unreachable",
	"conversions-fail", "sampled-again",
}

// TestStories plays whole lifecycles and compares them with their golden files, which read as prose. Run with
// -update to write them. Without a policy of their own, they are of one in a fleet: at every step, each revision
// that API servers may request is stored and served where they request it.
func TestStories(t *testing.T) {
	for policy, stories := range map[string]map[string]func(*world){
		policyYAML: {
			"policy-first":                policyFirst,
			"existing-crd":                existingCRD,
			"failed-objects":              failedObjects,
			"superseded-migration":        supersededMigration,
			"on-trigger":                  onTrigger,
			"paused":                      paused,
			"deletion-blocked":            deletionBlocked,
			"restored":                    restored,
			"deletion-orphan":             deletionOrphan,
			"orphaned":                    orphaned,
			"recreated-crd":               recreatedCRD,
			"namespace-deleted":           namespaceDeleted,
			"moved":                       moved,
			"changing-rules":              changingRules,
			"size-admission":              sizeAdmission,
			"bad-rules":                   badRules,
			"a-pod-goes-wrong":            aPodGoesWrong,
			"lost-sample":                 lostSample,
			"unreachable":                 unreachable,
			"version-first":               versionFirst,
			"version-added":               versionAdded,
			"storage-at-once":             storageAtOnce,
			"policy-after":                policyAfter,
			"crossplane":                  generatedByCrossplane,
			"drift-repaired":              driftRepaired,
			"drift-contested":             driftContested,
			"drift-tolerated":             driftTolerated,
			"conversions-fail":            conversionsFail,
			"sampled-again":               sampledAgain,
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
			"restored-stored-versions":    restoredStoredVersions,
			"migration-unserved":          migrationUnserved,
			"rotation":                    rotation,
			"rotation-during-migration":   rotationDuringMigration,
			"authority-lost":              authorityLost,
			"certificates-of-others":      certificatesOfOthers,
			"certificates-cert-manager":   certificatesByCertManager,
			"certificates-injected":       certificatesInjected,
			"version-retired":             versionRetired,
			"version-still-asked":         versionStillAsked,
			"version-asked-unseen":        versionAskedUnseen,
			"version-by-manifest":         versionByManifest,
			"version-taken-back":          versionTakenBack,
			"version-kept":                versionKept,
			"status-lost":                 statusLost,
			"version-and-deletion":        versionAndDeletion,
			"storage-rolled-back":         storageRolledBack,
			"storage-refused":             storageRefused,
			"storage-contested":           storageContested,
			"storage-tolerated":           storageTolerated,
			"downgrade":                   downgrade,
			"downgrade-unserved":          downgradeUnserved,
			"retirement-contested":        retirementContested,
			"image-and-rules":             imageAndRules,
			"dependents":                  dependentsBlock,
			"dependents-served":           dependentsBlockServing,
			"dependents-unknown":          dependentsUnknown,
			"dependents-losses":           dependentsBeforeLosses,
		},
		imageYAML: {
			"image":            imageStory,
			"image-bad":        badImages,
			"none-after-image": noneAfterImage,
		},
		serviceYAML: {
			"service":         serviceStory,
			"service-adopted": adoptedService,
		},
		urlYAML: {
			"url": urlStory,
		},
		noneYAML: {
			"version-without-rules": versionWithoutRules,
			"none":                  noneStory,
		},
		"": {
			"fleet-default": defaultFleet,
			"fleet-moves":   fleetMoves,
			"fleet-trouble": fleetTrouble,
			"fleet-rules":   fleetRules,
			"fleet-leaving": fleetLeaving,
			"fleet-orphan":  fleetOrphan,
		},
	} {
		for name, play := range stories {
			t.Run(name, func(t *testing.T) {
				w := newFleetWorld(t)
				if policy != "" {
					w = newWorld(t, policy)
				}
				play(w)
				checkStory(t, name, w)
				if slices.Contains(withEvents, name) {
					golden.Check(t, rulesetHash.ReplaceAllString(w.events.String(), "#"), "events", name+".txt")
				}
			})
		}
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
	w.define(onlyOld)
	w.say("The new version is added: served, not stored.")
	w.define(bothStoredOld)
	w.say("The new version becomes the storage version.")
	w.define(bothStoredNew)
	w.say("The migration is half done.")
	w.reports(contract.Record{State: contract.StateRunning, Counters: contract.Counters{Total: 1000, Rewritten: 490, Current: 10}})
	w.say("The migration is done.")
	w.reports(contract.Record{State: contract.StateCompleted, Counters: contract.Counters{Total: 1000, Rewritten: 990, Current: 10}})
	w.say("The old version is removed.")
	w.define(onlyNew)
}

func existingCRD(w *world) {
	w.say("A CustomResourceDefinition has two versions already, and no one knows what is stored.")
	w.define(bothStoredNew)
	w.say("The migration finds everything in place.")
	w.reports(contract.Record{State: contract.StateCompleted, Counters: contract.Counters{Total: 3, Current: 3}})
}

func failedObjects(w *world) {
	w.say("A migration cannot rewrite one object.")
	w.define(bothStoredNew)
	w.record(contract.Record{State: contract.StateCompleted, Counters: contract.Counters{Total: 3, Rewritten: 2, Failed: 1},
		Failures: []v1alpha1.MigrationFailure{{Object: "default/bad", Message: "denied the request: no"}}})
	w.converge()
	w.say("Nothing happens by itself. The object is fixed, and the trigger changed.")
	w.trigger("again")
	w.reports(contract.Record{State: contract.StateCompleted, Counters: contract.Counters{Total: 3, Rewritten: 1, Current: 2}})
}

func supersededMigration(w *world) {
	w.say("A migration runs.")
	w.define(bothStoredOld)
	w.reports(contract.Record{State: contract.StateRunning, Counters: contract.Counters{Total: 1000, Rewritten: 0, Current: 1}})
	w.say("The storage version changes under it: what it proved is void.")
	w.define(bothStoredNew)
	w.say("The storage version changes there and back: the generation tells.")
	w.applyCRD(bothStoredOld)
	w.define(bothStoredNew)
	w.completes(1000)
}

func onTrigger(w *world) {
	w.say("Migration waits for a trigger.")
	w.activate(bothStoredNew)
	w.say("The trigger is pulled.")
	w.trigger("now")
	w.completes(5)
	w.say("It is pulled once.")
	w.converge()
}

func paused(w *world) {
	w.say("A migration runs, and the policy is paused.")
	w.define(bothStoredNew)
	w.pause(true)
	w.say("It is resumed.")
	w.pause(false)
}

func changingRules(w *world) {
	w.say("Everything is active.")
	w.activate(bothStoredNew)
	w.say("The rules change: pods carry both, and then the CustomResourceDefinition is written.")
	w.useRules("/")
	w.say("API servers have had their time: pods carry the new rules only.")
	w.settleAPIServers()
	w.say("The rules change there and back: no pod is replaced for the way back.")
	w.useRules("@")
	w.useRules("/")
	w.say("They change again and again, and pods keep what API servers may still ask for, up to a limit.")
	for _, separator := range []string{"#", "%", "!"} {
		w.useRules(separator)
	}
	w.say("Some time later.")
	w.settleAPIServers()
	w.say("A migration runs, and the rules change: what it proved was by other rules.")
	w.trigger("now")
	w.useRules(":")
}

func badRules(w *world) {
	w.say("Everything is active.")
	w.activate(bothStoredNew)
	w.say("The rules are broken by an edit.")
	w.useRules("")
	w.say("They are fixed, but pods with them do not become ready.")
	w.HoldBack = true
	w.useRules("/")
	w.say("The previous rules come back.")
	w.useRules(":")
	w.say("Others come, whose pods are ready but answer wrongly.")
	w.HoldBack = false
	w.Misbehave = "a canary came back wrong"
	w.useRules("@")
	w.say("The previous rules come back.")
	w.Misbehave = ""
	w.useRules(":")
}

func lostSample(w *world) {
	w.say("A live object does not come back as it was.")
	w.observed.Policy.Spec.Migration.Mode = v1alpha1.MigrationOnTrigger
	w.samples = observed.BackgroundCheck{Lost: true, Reason: v1alpha1.ReasonRoundTripFailed,
		Message: "default/odd: .hostPort does not come back from v1beta1 to v1 and back"}
	w.define(bothStoredOld)
	w.say("No one looks again at once, but after a while, in case that the object was fixed.")
	w.converge()
	w.later(5 * time.Minute)
	w.say("The rules are fixed: that is another matter, and it is tried at once.")
	w.samples = observed.BackgroundCheck{Objects: 3}
	w.useRules("/")
	w.say("Pods are replaced, the same is written, and nothing is tried again.")
	w.observed.CRD.Spec.Conversion.Webhook.ClientConfig.CABundle = []byte("of another client")
	w.observed.CRD.Generation++
	w.converge()
}

func unreachable(w *world) {
	w.say("The converter's pods are fine, but the API server does not reach them.")
	w.observed.Policy.Spec.Migration.Mode = v1alpha1.MigrationOnTrigger
	w.apiServer = observed.BackgroundCheck{Reason: "Unreachable", Message: "context deadline exceeded: a firewall?"}
	w.define(bothStoredOld)
	w.say("It is asked again, after longer and longer times.")
	for _, wait := range []time.Duration{3 * time.Second, 8 * time.Second, 18 * time.Second} {
		w.later(wait)
		w.later(time.Second)
	}
	w.say("The firewall is opened.")
	w.apiServer = observed.BackgroundCheck{}
	w.later(time.Minute)
	w.say("Another client asks for no such proof, and has none.")
	w.observed.Policy.Spec.Verification = v1alpha1.Verification{Samples: new(int32), APIServers: v1alpha1.VerifyNoAPIServer}
	w.apiServer = observed.BackgroundCheck{Reason: "Unreachable", Message: "a firewall"}
	w.useRules("/")
}

func versionFirst(w *world) {
	w.say("A CustomResourceDefinition has one version, and a policy whose pods do not start yet.")
	w.observed.Policy.Spec.Migration.Mode = v1alpha1.MigrationOnTrigger
	w.HoldBack = true
	w.define(onlyOld)
	w.say("Its author does not wait: the new version is served now.")
	w.define(bothStoredOld)
	w.say("The pods are there. Two objects were written at the new version meanwhile.")
	w.HoldBack = false
	w.written = observed.BackgroundCheck{Objects: 2, Names: []string{"default/a", "default/b"}, AtLeast: true}
	w.converge()
}

func storageAtOnce(w *world) {
	w.say("A CustomResourceDefinition has one version, and a policy whose pods do not start yet.")
	w.observed.Policy.Spec.Migration.Mode = v1alpha1.MigrationOnTrigger
	w.HoldBack = true
	w.define(onlyOld)
	w.say("The new version is added and stored at once: any write may be wrong now.")
	w.define(bothStoredNew)
	w.say("The pods are there.")
	w.HoldBack = false
	w.written = observed.BackgroundCheck{Objects: 12, Names: []string{"default/a", "default/b"}}
	w.converge()
}

func policyAfter(w *world) {
	w.say("A CustomResourceDefinition serves two versions, and has no policy for long.")
	w.observed.Policy.Spec.Migration.Mode = v1alpha1.MigrationOnTrigger
	w.applyCRD(bothStoredOld)
	w.say("A policy comes. When the second version came no one knows, so all that was written counts.")
	w.converge()
	w.say("It is paused, and goes on: nothing is counted twice.")
	w.pause(true)
	w.pause(false)
}
